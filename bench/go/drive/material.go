package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The name that every server certificate made here carries, and that of every client.
const (
	serverName = "server.bench.example"
	clientName = "client.bench.example"
)

// authority is a CA made for one run.
type authority struct {
	curve elliptic.Curve
	key   *ecdsa.PrivateKey
	cert  *x509.Certificate
}

// leaf is a key with its certificate.
type leaf struct {
	key *ecdsa.PrivateKey
	der []byte
}

func newAuthority(curve elliptic.Curve, name string, parent *authority) (*authority, error) {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	issuer, issuerKey := template, crypto.Signer(key)
	if parent != nil {
		issuer, issuerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{curve, key, cert}, err
}

// issue makes a leaf that may be used on both sides.
func (ca *authority) issue(name string) (*leaf, error) {
	key, err := ecdsa.GenerateKey(ca.curve, rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.DNSNames = []string{name, "localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	return &leaf{key, der}, err
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

// write lays the leaf out as tls.crt, tls.key and ca.crt.
func (l *leaf) write(dir string, ca *authority) error {
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		writePEM(filepath.Join(dir, "tls.crt"), "CERTIFICATE", l.der),
		writeKey(filepath.Join(dir, "tls.key"), l.key),
		writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", ca.cert.Raw),
	)
}

// writeRevocations lays out a list of certificates that don't exist.
func (ca *authority) writeRevocations(path string, count int64) error {
	list := &x509.RevocationList{
		Number:     big.NewInt(1),
		ThisUpdate: time.Now().Add(-time.Hour),
		NextUpdate: time.Now().Add(24 * time.Hour),
	}
	for serial := range count {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: big.NewInt(serial + 1), RevocationTime: list.ThisUpdate})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, ca.cert, ca.key)
	if err != nil {
		return err
	}
	return writePEM(path, "X509 CRL", der)
}

func writePEM(path, label string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}), 0o600)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "PRIVATE KEY", der)
}

// clientTLS reads a folder with tls.crt, tls.key and ca.crt. No session cache, so no resumption.
func clientTLS(dir, name string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, err
	}
	roots, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, errors.New("no certificate in " + dir + "/ca.crt")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		RootCAs:      pool,
		ServerName:   name,
	}, nil
}
