package main

import (
	"crypto/elliptic"
	"errors"
	"os"
	"path/filepath"
)

const cfsslConfig = `{"signing": {"default": {
  "expiry": "2160h",
  "usages": ["signing", "digital signature", "server auth", "client auth"]
}}}
`

// prepareCfssl writes a cfssl folder: a CA, its policy, and the certificates of both sides of its
// mutual TLS. cfssl stores nothing.
func prepareCfssl(dir string) error {
	ca, err := newAuthority(elliptic.P384(), "Bench cfssl CA", nil)
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
	in := func(name string) string { return filepath.Join(dir, name) }
	return errors.Join(
		server.write(in("server"), ca),
		client.write(in("client"), ca),
		writePEM(in("ca.crt"), "CERTIFICATE", ca.cert.Raw),
		writeKey(in("ca.key"), ca.key),
		os.WriteFile(in("config.json"), []byte(cfsslConfig), 0o600),
	)
}
