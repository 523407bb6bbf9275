// Healthserver is the grpc-go server that our provider is measured beside: mutual TLS 1.3 without
// resumption, grpc.health.v1, and nothing else.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	dir := flag.String("tls", "", "folder with tls.crt, tls.key and ca.crt")
	flag.Parse()
	if err := serve(*address, *dir); err != nil {
		log.Fatal(err)
	}
}

func serve(address, dir string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return err
	}
	roots, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return errors.New("no certificate in ca.crt")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{pair},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              pool,
		SessionTicketsDisabled: true,
	})))
	healthpb.RegisterHealthServer(server, health.NewServer())
	return server.Serve(listener)
}
