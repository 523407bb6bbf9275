package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"time"
)

// caller is one client of a CA with its own connection.
type caller interface {
	// call sends the request at this index and returns the certificate's bytes as they came, PEM
	// or DER, having checked that there is one.
	call(at int) ([]byte, error)
}

// issueFlags is what all three CAs' clients need.
type issueFlags struct {
	address string
	tls     string
	name    string
	profile string
	step    string
}

// issue calls one CA's signing endpoint from many clients.
func issue(args []string) error {
	var f issueFlags
	flags := flag.NewFlagSet("issue", flag.ExitOnError)
	api := flags.String("api", "", "vidimus, step or cfssl")
	flags.StringVar(&f.address, "address", "", "host:port")
	flags.StringVar(&f.tls, "tls", "", "folder with tls.crt, tls.key and ca.crt")
	flags.StringVar(&f.name, "server-name", serverName, "name in the server's certificate")
	flags.StringVar(&f.profile, "profile", "", "profile (vidimus)")
	flags.StringVar(&f.step, "step", "", "folder of step-ca, for one-time tokens")
	path := flags.String("requests", "", "file with requests")
	clients := flags.Int("clients", 1, "clients, each with a connection of its own")
	length := flags.Duration("for", 2*time.Second, "how long")
	_ = flags.Parse(args)

	requests, err := openRequests(*path)
	if err != nil {
		return err
	}
	connect, ok := map[string]func(issueFlags, []request) (func() (caller, error), error){
		"vidimus": vidimusCallers, "step": stepCallers, "cfssl": cfsslCallers,
	}[*api]
	if !ok {
		return errors.New("unknown api: " + *api)
	}
	open, err := connect(f, requests.requests)
	if err != nil {
		return err
	}
	callers := make([]caller, *clients)
	for at := range callers {
		if callers[at], err = open(); err != nil {
			return err
		}
		if err := firstCall(callers[at], requests); err != nil {
			return fmt.Errorf("first call: %w", err)
		}
	}
	return loop(*clients, *length, func(worker int) error {
		at, err := requests.take()
		if err != nil {
			return err
		}
		_, err = callers[worker].call(at)
		return err
	})
}

// firstCall opens the connection and looks whether the answer certifies the request's key, so that
// nothing is measured that isn't issuing.
func firstCall(c caller, requests *source) error {
	at, err := requests.take()
	if err != nil {
		return err
	}
	answer, err := c.call(at)
	if err != nil {
		return err
	}
	if block, _ := pem.Decode(answer); block != nil {
		answer = block.Bytes
	}
	cert, err := x509.ParseCertificate(answer)
	if err != nil {
		return err
	}
	csr, err := x509.ParseCertificateRequest(requests.requests[at].DER)
	if err != nil {
		return err
	}
	if !bytes.Equal(cert.RawSubjectPublicKeyInfo, csr.RawSubjectPublicKeyInfo) {
		return errors.New("the certificate is for another key")
	}
	return cert.VerifyHostname(requests.requests[at].Name)
}
