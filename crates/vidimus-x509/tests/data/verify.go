// Verifies certificates with crypto/x509, which nobody here wrote.
//
//	go run verify.go UNIX-TIME USAGE ROOT.der INTERMEDIATES.pem CERTIFICATE.der...
//
// USAGE is server, client or any. Prints one line a certificate: its file, and the public key info
// as hex. Ends with 1 at the first that doesn't verify.
package main

import (
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	now, err := strconv.ParseInt(os.Args[1], 10, 64)
	check("time", err)
	usage := map[string]x509.ExtKeyUsage{
		"server": x509.ExtKeyUsageServerAuth,
		"client": x509.ExtKeyUsageClientAuth,
		"any":    x509.ExtKeyUsageAny,
	}[os.Args[2]]
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(read(os.Args[3]))
	pem, err := os.ReadFile(os.Args[4])
	check(os.Args[4], err)
	between.AppendCertsFromPEM(pem)
	for _, file := range os.Args[5:] {
		certificate := read(file)
		_, err := certificate.Verify(x509.VerifyOptions{
			Roots:         roots,
			Intermediates: between,
			CurrentTime:   time.Unix(now, 0),
			KeyUsages:     []x509.ExtKeyUsage{usage},
		})
		check(file, err)
		fmt.Println(file, hex.EncodeToString(certificate.RawSubjectPublicKeyInfo))
	}
}

func read(file string) *x509.Certificate {
	der, err := os.ReadFile(file)
	check(file, err)
	certificate, err := x509.ParseCertificate(der)
	check(file, err)
	return certificate
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, what+":", err)
		os.Exit(1)
	}
}
