package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	pb "vidimus.dev/interop/gen/providerv1"
)

type serverOptions struct {
	dir       string
	clientCA  string
	plaintext bool
	delay     time.Duration
	hold      bool
	maxAge    time.Duration
	minPing   time.Duration
	streams   uint
}

func serverCommand(flags *flag.FlagSet) func() error {
	var o serverOptions
	flags.StringVar(&o.dir, "dir", "", "folder with tls.crt, tls.key and ca.crt")
	flags.StringVar(&o.clientCA, "client-ca", "", "client roots other than the folder's ca.crt")
	flags.BoolVar(&o.plaintext, "plaintext", false, "no TLS")
	flags.DurationVar(&o.delay, "delay", 0, "how long each call takes")
	flags.BoolVar(&o.hold, "hold", false, "each call takes until /release is asked for")
	flags.DurationVar(&o.maxAge, "max-age", 2*time.Hour, "how old a connection gets")
	flags.DurationVar(&o.minPing, "min-ping", 5*time.Second, "how often a client may ping")
	flags.UintVar(&o.streams, "max-streams", 0, "how many calls a connection may carry at once; 0 for any number")
	return func() error { return runServer(o) }
}

// site is a listener that several servers use one after the other, so that a new one can take over
// while the old one drains, without a moment in which nobody listens.
type site struct {
	options  serverOptions
	listener net.Listener
	conns    chan net.Conn
	calls    atomic.Int64
	open     atomic.Int64
	ended    atomic.Int64
	drained  atomic.Int64
	// Closed to let the calls go that have begun.
	held atomic.Pointer[chan struct{}]

	lock    sync.Mutex
	current *grpc.Server
	drains  sync.WaitGroup
}

func runServer(o serverOptions) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &site{options: o, listener: listener, conns: make(chan net.Conn)}
	s.release()
	go s.accept()
	if err := s.replace(); err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	stopped := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/status", s.page)
	mux.HandleFunc("/release", func(w http.ResponseWriter, r *http.Request) {
		s.release()
		s.page(w, r)
	})
	mux.HandleFunc("/replace", func(w http.ResponseWriter, r *http.Request) {
		if err := s.replace(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.page(w, r)
	})
	mux.HandleFunc("/stop", func(w http.ResponseWriter, r *http.Request) {
		s.lock.Lock()
		s.current.GracefulStop()
		s.lock.Unlock()
		s.drains.Wait()
		s.page(w, r)
		close(stopped)
	})
	page := &http.Server{Handler: mux}
	go page.Serve(control)
	say(map[string]any{"event": "listening", "addr": listener.Addr().String(), "control": control.Addr().String()})
	<-stopped
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return page.Shutdown(ctx)
}

func (s *site) page(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"calls":%d,"open":%d,"ended":%d,"drained":%d}`,
		s.calls.Load(), s.open.Load(), s.ended.Load(), s.drained.Load())
}

// release lets the calls go that have begun, and holds those that come.
func (s *site) release() {
	held := make(chan struct{})
	if before := s.held.Swap(&held); before != nil {
		close(*before)
	}
}

func (s *site) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.conns <- conn
	}
}

// replace starts a new server and lets the one before drain.
func (s *site) replace() error {
	server, err := s.server()
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	previous := s.current
	s.current = server
	go server.Serve(&share{site: s, closed: make(chan struct{})})
	if previous != nil {
		s.drains.Add(1)
		go func() {
			defer s.drains.Done()
			previous.GracefulStop()
			s.drained.Add(1)
		}()
	}
	return nil
}

func (s *site) server() (*grpc.Server, error) {
	o := s.options
	options := []grpc.ServerOption{
		grpc.StatsHandler(&connections{site: s}),
		grpc.UnaryInterceptor(s.answer),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     15 * time.Minute,
			MaxConnectionAge:      o.maxAge,
			MaxConnectionAgeGrace: 5 * time.Minute,
			Time:                  30 * time.Second,
			Timeout:               10 * time.Second,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: o.minPing, PermitWithoutStream: false}),
	}
	if o.streams > 0 {
		options = append(options, grpc.MaxConcurrentStreams(uint32(o.streams)))
	}
	if !o.plaintext {
		config, err := serverTLS(o)
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	pb.RegisterProviderServer(server, pb.UnimplementedProviderServer{})
	state := health.NewServer()
	state.SetServingStatus("provider", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, state)
	return server, nil
}

func serverTLS(o serverOptions) (*tls.Config, error) {
	path := o.clientCA
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
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  roots,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return loadPair(o.dir)
		},
	}, nil
}

// answer gives every method of the provider an empty answer of its own type.
func (s *site) answer(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	// Before it is counted: what is counted can be let go.
	held := *s.held.Load()
	s.calls.Add(1)
	var over <-chan time.Time
	if !s.options.hold {
		over = time.After(s.options.delay)
	}
	select {
	case <-held:
	case <-over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !strings.HasPrefix(info.FullMethod, "/provider.v1.Provider/") {
		return handler(ctx, request)
	}
	name := strings.ReplaceAll(strings.TrimPrefix(info.FullMethod, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	return dynamicpb.NewMessage(found.(protoreflect.MethodDescriptor).Output()), nil
}

// share is one server's view of the site's listener.
type share struct {
	site   *site
	once   sync.Once
	closed chan struct{}
}

func (v *share) Accept() (net.Conn, error) {
	select {
	case <-v.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case conn := <-v.site.conns:
		return conn, nil
	case <-v.closed:
		return nil, net.ErrClosed
	}
}

func (v *share) Close() error {
	v.once.Do(func() { close(v.closed) })
	return nil
}

func (v *share) Addr() net.Addr { return v.site.listener.Addr() }

// connections counts them.
type connections struct{ site *site }

func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}

func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *connections) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		c.site.open.Add(1)
	case *stats.ConnEnd:
		c.site.open.Add(-1)
		c.site.ended.Add(1)
	}
}
