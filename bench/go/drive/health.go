package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// health calls grpc.health.v1 Check, on a new connection each time or on one that stands.
func health(args []string) error {
	flags := flag.NewFlagSet("health", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	dir := flags.String("tls", "", "folder with tls.crt, tls.key and ca.crt")
	name := flags.String("server-name", serverName, "name in the server's certificate")
	mode := flags.String("mode", "", "connect (one call on each new connection) or calls (on connections that stand)")
	workers := flags.Int("workers", 1, "how many at a time")
	connections := flags.Int("connections", 1, "how many connections the workers share, in mode calls")
	length := flags.Duration("for", 2*time.Second, "how long")
	_ = flags.Parse(args)

	config, err := clientTLS(*dir, *name)
	if err != nil {
		return err
	}
	open := func() (*grpc.ClientConn, error) {
		return grpc.NewClient(*address, grpc.WithTransportCredentials(credentials.NewTLS(config.Clone())))
	}
	once := func() error {
		conn, err := open()
		if err != nil {
			return err
		}
		return errors.Join(check(conn), conn.Close())
	}
	if err := once(); err != nil {
		return fmt.Errorf("first call: %w", err)
	}
	switch *mode {
	case "connect":
		return loop(*workers, *length, func(int) error { return once() })
	case "calls":
		standing := make([]*grpc.ClientConn, *connections)
		for at := range standing {
			conn, err := open()
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := check(conn); err != nil {
				return err
			}
			standing[at] = conn
		}
		return loop(*workers, *length, func(worker int) error { return check(standing[worker%len(standing)]) })
	default:
		return errors.New("unknown mode: " + *mode)
	}
}

func check(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.Status != healthpb.HealthCheckResponse_SERVING {
		return errors.New("the server says " + answer.Status.String())
	}
	return nil
}
