package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"
)

// bare opens a mutual connection each time, sends the least that shows that the server has accepted
// it, and closes it. A TLS 1.3 client is done before the server has judged its certificate, so only
// an answer counts.
func bare(args []string) error {
	flags := flag.NewFlagSet("bare", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	dir := flags.String("tls", "", "folder with tls.crt, tls.key and ca.crt")
	name := flags.String("server-name", serverName, "name in the server's certificate")
	mode := flags.String("mode", "", "http (one HTTP/1.1 request) or echo (one byte, there and back)")
	group := flags.String("group", "x25519", "key exchange: x25519 or hybrid (X25519MLKEM768)")
	workers := flags.Int("workers", 1, "how many at a time")
	length := flags.Duration("for", 2*time.Second, "how long")
	_ = flags.Parse(args)

	config, err := clientTLS(*dir, *name)
	if err != nil {
		return err
	}
	switch *group {
	case "x25519":
		config.CurvePreferences = []tls.CurveID{tls.X25519}
	case "hybrid":
		config.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768}
	default:
		return errors.New("unknown group: " + *group)
	}
	exchange := map[string]func(*tls.Conn) error{"http": getOnce, "echo": echoOnce}[*mode]
	if exchange == nil {
		return errors.New("unknown mode: " + *mode)
	}
	once := func() error {
		dialer := &net.Dialer{Timeout: 10 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", *address, config)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		return exchange(conn)
	}
	if err := once(); err != nil {
		return fmt.Errorf("first connection: %w", err)
	}
	return loop(*workers, *length, func(int) error { return once() })
}

func getOnce(conn *tls.Conn) error {
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: " + serverName + "\r\nConnection: close\r\n\r\n")); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("the server answered %.100q", answer)
	}
	return nil
}

func echoOnce(conn *tls.Conn) error {
	if _, err := conn.Write([]byte{'x'}); err != nil {
		return err
	}
	var back [1]byte
	if _, err := io.ReadFull(conn, back[:]); err != nil {
		return err
	}
	if back[0] != 'x' {
		return fmt.Errorf("the server sent %q back", back)
	}
	return nil
}

// echo sends back whatever comes, in plaintext: what a proxy is put in front of.
func echo(args []string) error {
	flags := flag.NewFlagSet("echo", flag.ExitOnError)
	address := flags.String("address", "", "where to listen")
	_ = flags.Parse(args)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}
