package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	pb "vidimus.dev/interop/gen/providerv1"
)

type clientOptions struct {
	addr       string
	serverName string
	dir        string
	ca         string
	noCert     bool
	maxTLS12   bool
	mode       string
	workers    int
}

func clientCommand(flags *flag.FlagSet) func() error {
	var o clientOptions
	tlsFlags(flags, &o)
	flags.StringVar(&o.mode, "mode", "once", "once, every, machine or loop")
	flags.IntVar(&o.workers, "workers", 8, "callers of a loop")
	return func() error { return runClient(o) }
}

func tlsFlags(flags *flag.FlagSet, o *clientOptions) {
	flags.StringVar(&o.addr, "addr", "", "host:port of the server")
	flags.StringVar(&o.serverName, "server-name", "", "the name its certificate must carry")
	flags.StringVar(&o.dir, "dir", "", "folder with tls.crt, tls.key and ca.crt")
	flags.StringVar(&o.ca, "ca", "", "roots other than the folder's ca.crt")
	flags.BoolVar(&o.noCert, "no-cert", false, "present no certificate")
	flags.BoolVar(&o.maxTLS12, "max-tls12", false, "offer TLS 1.2 at most")
}

func runClient(o clientOptions) error {
	config, err := clientTLS(o)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(o.addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer conn.Close()
	switch o.mode {
	case "once":
		once(conn)
	case "every":
		every(conn)
	case "machine":
		machine(conn)
	case "loop":
		loop(conn, o.workers)
	default:
		return fmt.Errorf("no such mode: %s", o.mode)
	}
	return nil
}

// clientTLS is what VirtRigaud's manager uses, but with the certificate read anew for each
// handshake, so that a rotation shows.
func clientTLS(o clientOptions) (*tls.Config, error) {
	path := o.ca
	if path == "" {
		path = filepath.Join(o.dir, "ca.crt")
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", path)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: o.serverName}
	if o.maxTLS12 {
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	}
	if !o.noCert {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return loadPair(o.dir)
		}
	}
	return config, nil
}

func loadPair(dir string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	return &pair, err
}

// once makes one call and one health check, and says how they ended.
func once(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := pb.NewProviderClient(conn).Validate(ctx, &pb.ValidateRequest{})
	state, healthErr := healthpb.NewHealthClient(conn).
		Check(ctx, &healthpb.HealthCheckRequest{Service: "provider.v1.Provider"})
	say(map[string]any{
		"event": "result", "code": status.Code(err).String(), "message": text(err), "ok": answer.GetOk(),
		"health": state.GetStatus().String(), "health_code": status.Code(healthErr).String(),
	})
}

// every calls each method of the descriptor with an empty request.
func every(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	service := pb.File_provider_v1_provider_proto.Services().ByName("Provider")
	methods := service.Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		request := dynamicpb.NewMessage(method.Input())
		response := dynamicpb.NewMessage(method.Output())
		err := conn.Invoke(ctx, methodPath(method), request, response)
		say(map[string]any{
			"event": "method", "name": string(method.Name()), "code": status.Code(err).String(), "message": text(err),
		})
	}
}

func methodPath(method protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
}

// machine takes one virtual machine from its creation to its end with the typed client.
func machine(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client := pb.NewProviderClient(conn)
	var trail []string
	err := func() error {
		created, err := client.Create(ctx, &pb.CreateRequest{
			Name:         "go",
			ClassJson:    `{"CPU":3,"MemoryMiB":3072,"Firmware":"","DiskDefaults":null,"ExtraConfig":null}`,
			NetworksJson: `[{"Name":"lan","Portgroup":"","VLAN":0,"StaticIP":"192.0.2.9"}]`,
			DisksJson:    `null`,
		})
		if err != nil {
			return err
		}
		if err := finish(ctx, client, created.GetTask()); err != nil {
			return err
		}
		on, err := client.Power(ctx, &pb.PowerRequest{Id: created.GetId(), Op: pb.PowerOp_POWER_OP_ON})
		if err != nil {
			return err
		}
		if err := finish(ctx, client, on.GetTask()); err != nil {
			return err
		}
		described, err := client.Describe(ctx, &pb.DescribeRequest{Id: created.GetId()})
		if err != nil {
			return err
		}
		trail = append(trail, described.GetPowerState(), described.GetIps()[0])
		list, err := client.ListVMs(ctx, &pb.ListVMsRequest{})
		if err != nil {
			return err
		}
		trail = append(trail, fmt.Sprint(list.GetVms()[0].GetCpu()))
		gone, err := client.Delete(ctx, &pb.DeleteRequest{Id: created.GetId()})
		if err != nil {
			return err
		}
		if err := finish(ctx, client, gone.GetTask()); err != nil {
			return err
		}
		described, err = client.Describe(ctx, &pb.DescribeRequest{Id: created.GetId()})
		if err != nil {
			return err
		}
		trail = append(trail, fmt.Sprint(described.GetExists()))
		return nil
	}()
	say(map[string]any{"event": "machine", "message": text(err), "trail": trail})
}

func finish(ctx context.Context, client pb.ProviderClient, task *pb.TaskRef) error {
	for {
		state, err := client.TaskStatus(ctx, &pb.TaskStatusRequest{Task: task})
		if err != nil {
			return err
		}
		if state.GetDone() {
			if state.GetError() != "" {
				return errors.New(state.GetError())
			}
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// loop calls until standard input ends; one of the callers opens health streams.
func loop(conn *grpc.ClientConn, workers int) {
	var calls, failed atomic.Int64
	var first atomic.Value
	stop := make(chan struct{})
	var group sync.WaitGroup
	for number := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				var err error
				if number == 0 {
					err = firstState(conn)
				} else {
					err = describe(conn)
				}
				if err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, err.Error())
				} else {
					calls.Add(1)
				}
			}
		}()
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for running := true; running; {
		select {
		case <-ticker.C:
			say(map[string]any{"event": "progress", "calls": calls.Load(), "failed": failed.Load()})
		case <-ended:
			running = false
		}
	}
	close(stop)
	group.Wait()
	say(map[string]any{"event": "done", "calls": calls.Load(), "failed": failed.Load(), "first": first.Load()})
}

func describe(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := pb.NewProviderClient(conn).Describe(ctx, &pb.DescribeRequest{Id: "vm-1"})
	return err
}

func firstState(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: "provider"})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
