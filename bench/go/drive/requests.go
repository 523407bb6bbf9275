package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/gob"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// How many RSA keys stand behind the RSA requests: making one takes a tenth of a second, so
// requests differ in their names and not all in their keys.
const rsaKeys = 16

// request is a certification request made ahead.
type request struct {
	Name string
	DER  []byte
}

// source hands out each request of a file once, to any number of workers.
type source struct {
	requests []request
	next     atomic.Int64
}

func openRequests(path string) (*source, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s := new(source)
	return s, gob.NewDecoder(file).Decode(&s.requests)
}

func (s *source) take() (int, error) {
	at := int(s.next.Add(1)) - 1
	if at >= len(s.requests) {
		return 0, errExhausted
	}
	return at, nil
}

// writeRequests makes count requests on all cores; key says which key the request at an index has.
func writeRequests(path string, count int, key func(int) (crypto.Signer, error)) error {
	requests := make([]request, count)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range runtime.NumCPU() {
		wait.Go(func() {
			for at := int(next.Add(1)) - 1; at < count; at = int(next.Add(1)) - 1 {
				made, err := newRequest(at, key)
				if err != nil {
					failed.Store(&err)
					return
				}
				requests[at] = made
			}
		})
	}
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return gob.NewEncoder(file).Encode(requests)
}

func newRequest(at int, key func(int) (crypto.Signer, error)) (request, error) {
	signer, err := key(at)
	if err != nil {
		return request{}, err
	}
	name := fmt.Sprintf("leaf-%06d.bench.example", at)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: name},
		DNSNames: []string{name},
	}, signer)
	return request{name, der}, err
}

func p384Key(int) (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
}

func rsaKeyring() (func(int) (crypto.Signer, error), error) {
	keys := make([]*rsa.PrivateKey, rsaKeys)
	for at := range keys {
		var err error
		if keys[at], err = rsa.GenerateKey(rand.Reader, 3072); err != nil {
			return nil, err
		}
	}
	return func(at int) (crypto.Signer, error) { return keys[at%rsaKeys], nil }, nil
}
