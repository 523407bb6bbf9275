package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"flag"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// raw sends and receives messages as they are, so that no generated code is needed.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (raw) Name() string { return "raw" }

// echoClientCommand makes one call with the message given in hexadecimal digits.
func echoClientCommand(flags *flag.FlagSet) func() error {
	var o clientOptions
	var method, message string
	tlsFlags(flags, &o)
	flags.StringVar(&method, "method", "", "/package.Service/Method")
	flags.StringVar(&message, "message", "", "the request, in hexadecimal digits")
	return func() error {
		request, err := hex.DecodeString(message)
		if err != nil {
			return err
		}
		config, err := clientTLS(o)
		if err != nil {
			return err
		}
		conn, err := grpc.NewClient(o.addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			return err
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var answer []byte
		err = conn.Invoke(ctx, method, &request, &answer, grpc.ForceCodec(raw{}))
		say(map[string]any{
			"event": "result", "code": status.Code(err).String(), "message": text(err),
			"answer": hex.EncodeToString(answer),
		})
		return nil
	}
}

// echoServerCommand answers every unary call with its request.
func echoServerCommand(flags *flag.FlagSet) func() error {
	var o serverOptions
	var maxTLS12 bool
	flags.StringVar(&o.dir, "dir", "", "folder with tls.crt, tls.key and ca.crt")
	flags.BoolVar(&maxTLS12, "max-tls12", false, "speak TLS 1.2 at most")
	return func() error {
		config, err := serverTLS(o)
		if err != nil {
			return err
		}
		if maxTLS12 {
			config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		say(map[string]any{"event": "listening", "port": listener.Addr().(*net.TCPAddr).Port})
		server := grpc.NewServer(
			grpc.Creds(credentials.NewTLS(config)),
			grpc.ForceServerCodec(raw{}),
			grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
				var message []byte
				if err := stream.RecvMsg(&message); err != nil {
					return err
				}
				return stream.SendMsg(&message)
			}),
		)
		return server.Serve(listener)
	}
}
