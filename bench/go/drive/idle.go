package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// How many connections are being opened at a time.
const opening = 8

// idle opens many HTTP/2 connections and leaves them alone but for answering pings. It says ready
// once all of them stand, and ends at a line on standard input.
func idle(args []string) error {
	flags := flag.NewFlagSet("idle", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	dir := flags.String("tls", "", "folder with tls.crt, tls.key and ca.crt")
	name := flags.String("server-name", serverName, "name in the server's certificate")
	count := flags.Int("count", 1000, "how many connections")
	_ = flags.Parse(args)

	config, err := clientTLS(*dir, *name)
	if err != nil {
		return err
	}
	config.NextProtos = []string{http2.NextProtoTLS}
	failed := make([]error, opening)
	lost := make(chan error, *count)
	var wait sync.WaitGroup
	for worker := range opening {
		wait.Go(func() {
			for at := worker; at < *count; at += opening {
				if failed[worker] = hold(*address, config, lost); failed[worker] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("nobody said go: %w", err)
	}
	select {
	case err := <-lost:
		return fmt.Errorf("a connection was lost: %w", err)
	default:
		fmt.Println("held")
		return nil
	}
}

// hold opens a connection, waits for the server's settings and leaves a reader behind.
func hold(address string, config *tls.Config, lost chan<- error) error {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, config)
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	// The first frame is the server's settings, and shows that it accepted our certificate.
	if err := answer(framer); err != nil {
		return err
	}
	go func() {
		for {
			if err := answer(framer); err != nil {
				lost <- err
				return
			}
		}
	}()
	return nil
}

// answer reads one frame and acknowledges what wants it.
func answer(framer *http2.Framer) error {
	frame, err := framer.ReadFrame()
	if err != nil {
		return err
	}
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if !frame.IsAck() {
			return framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			return framer.WritePing(true, frame.Data)
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server says goodbye: %v", frame.ErrCode)
	}
	return nil
}
