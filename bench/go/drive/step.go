package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

const stepProvisioner = "bench"

var base64URL = base64.RawURLEncoding

// prepareStep writes a step-ca folder: root, intermediate, a provisioner whose tokens we sign, a
// Badger database (a token is good once, and what was issued is stored), and a client certificate.
func prepareStep(dir string, port int) error {
	root, err := newAuthority(elliptic.P384(), "Bench step Root", nil)
	if err != nil {
		return err
	}
	intermediate, err := newAuthority(elliptic.P384(), "Bench step Intermediate", root)
	if err != nil {
		return err
	}
	client, err := intermediate.issue(clientName)
	if err != nil {
		return err
	}
	provisioner, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	config, err := json.MarshalIndent(map[string]any{
		"root":     in("root.crt"),
		"crt":      in("intermediate.crt"),
		"key":      in("intermediate.key"),
		"address":  fmt.Sprintf("127.0.0.1:%d", port),
		"dnsNames": []string{serverName, "localhost"},
		"db":       map[string]string{"type": "badgerv2", "dataSource": in("db")},
		"authority": map[string]any{"provisioners": []any{map[string]any{
			"type": "JWK", "name": stepProvisioner, "key": jwk(provisioner),
			"claims": map[string]string{"maxTLSCertDuration": "2160h", "defaultTLSCertDuration": "24h"},
		}}},
		"tls": map[string]any{"minVersion": 1.3, "maxVersion": 1.3},
	}, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		client.write(in("client"), root),
		writePEM(in("root.crt"), "CERTIFICATE", root.cert.Raw),
		writePEM(in("intermediate.crt"), "CERTIFICATE", intermediate.cert.Raw),
		writeKey(in("intermediate.key"), intermediate.key),
		writeKey(in("provisioner.key"), provisioner),
		os.WriteFile(in("ca.json"), config, 0o600),
	)
}

func jwk(key *ecdsa.PrivateKey) map[string]string {
	x, y := coordinates(key)
	return map[string]string{
		"use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": thumbprint(key), "x": x, "y": y,
	}
}

func coordinates(key *ecdsa.PrivateKey) (x, y string) {
	point, _ := key.PublicKey.Bytes() // 4, x, y; a P-256 key that was just made has such a form
	return base64URL.EncodeToString(point[1:33]), base64URL.EncodeToString(point[33:])
}

// thumbprint is RFC 7638's.
func thumbprint(key *ecdsa.PrivateKey) string {
	x, y := coordinates(key)
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, x, y))
	return base64URL.EncodeToString(sum[:])
}

// tokenMaker signs step-ca's one-time tokens.
type tokenMaker struct {
	key      *ecdsa.PrivateKey
	header   string
	audience string
	root     string
}

func openTokenMaker(dir, address string) (*tokenMaker, error) {
	key, err := readDER(filepath.Join(dir, "provisioner.key"))
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	root, err := readDER(filepath.Join(dir, "root.crt"))
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(root)
	signer := parsed.(*ecdsa.PrivateKey)
	header := fmt.Sprintf(`{"alg":"ES256","kid":"%s","typ":"JWT"}`, thumbprint(signer))
	return &tokenMaker{
		key:      signer,
		header:   base64URL.EncodeToString([]byte(header)),
		audience: fmt.Sprintf("https://%s:%s/1.0/sign", serverName, port),
		root:     hex.EncodeToString(sum[:]),
	}, nil
}

func (m *tokenMaker) token(name string) (string, error) {
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": stepProvisioner, "aud": m.audience, "sub": name, "sans": []string{name}, "sha": m.root,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "jti": rand.Text(),
	})
	if err != nil {
		return "", err
	}
	signed := m.header + "." + base64URL.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, m.key, sum[:])
	if err != nil {
		return "", err
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64URL.EncodeToString(signature[:]), nil
}

func readDER(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM block in " + path)
	}
	return block.Bytes, nil
}
