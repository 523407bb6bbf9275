package main

import (
	"crypto/elliptic"
	"encoding/pem"
	"errors"
	"flag"
	"os"
	"path/filepath"
)

// revoked is how many certificates the list of a server has; grpc-go's server reads none.
const revoked = 1000

// prepare makes everything that servers and clients read: requests, the two servers' certificates
// for the connection figures in both key types, and the folders of step-ca and cfssl.
func prepare(args []string) error {
	flags := flag.NewFlagSet("prepare", flag.ExitOnError)
	dir := flags.String("dir", "", "folder to fill")
	stepPort := flags.Int("step-port", 0, "port that step-ca will listen on")
	p384 := flags.Int("p384", 6000, "requests with P-384 keys")
	rsa := flags.Int("rsa", 6000, "requests with RSA 3072 keys")
	_ = flags.Parse(args)

	keyring, err := rsaKeyring()
	if err != nil {
		return err
	}
	if err := errors.Join(
		writeRequests(filepath.Join(*dir, "p-384.requests"), *p384, p384Key),
		writeRequests(filepath.Join(*dir, "rsa-3072.requests"), *rsa, keyring),
		exportRequest(*dir, "p-384"),
		exportRequest(*dir, "rsa-3072"),
	); err != nil {
		return err
	}
	return errors.Join(
		connectionMaterial(filepath.Join(*dir, "p-256"), elliptic.P256()),
		connectionMaterial(filepath.Join(*dir, "p-384"), elliptic.P384()),
		prepareStep(filepath.Join(*dir, "step"), *stepPort),
		prepareCfssl(filepath.Join(*dir, "cfssl")),
	)
}

// exportRequest writes the first request as PEM, for whoever measures the bare computation.
func exportRequest(dir, keys string) error {
	source, err := openRequests(filepath.Join(dir, keys+".requests"))
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "CERTIFICATE REQUEST", Bytes: source.requests[0].DER}
	return os.WriteFile(filepath.Join(dir, keys+".csr"), pem.EncodeToMemory(block), 0o600)
}

func connectionMaterial(dir string, curve elliptic.Curve) error {
	ca, err := newAuthority(curve, "Bench CA", nil)
	if err != nil {
		return err
	}
	server, err := ca.issue(serverName)
	if err != nil {
		return err
	}
	client, err := ca.issue(clientName)
	if err != nil {
		return err
	}
	return errors.Join(
		server.write(filepath.Join(dir, "server"), ca),
		ca.writeRevocations(filepath.Join(dir, "server", "crl.pem"), revoked),
		client.write(filepath.Join(dir, "client"), ca),
	)
}
