// Package serving serves webhooks over TLS, and ends without failing a call.
//
// An API server keeps its connections to a webhook open, and sends requests on them. When a replica ends, some of these
// requests are under way, and a load balancer goes on sending new ones for a while. A POST whose connection closes
// before the answer has failed: the client must not repeat the request. So the end of a [Server] comes in this order:
//
//  1. [Server.Drain]: each answer closes its connection. New connections are accepted.
//  2. After the time for draining, [Server.Close] closes the listener.
//  3. Each connection without a request is closed, but only if no request has arrived in the meantime: see [conn].
//  4. Close waits for the requests that are being answered.
//
// For example, a replica drains for 15 s. The balancer stops sending new connections after 2 s. A connection that was
// used at second 3 is closed by its answer. A connection whose last request came before the drain is closed at second
// 15. A request that arrives on that connection at this moment is answered first.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/operator/internal/connlimit"
)

// Options are the settings of a [Server].
type Options struct {
	// GetCertificate returns the certificate of a new connection. An error ends the handshake. Without GetCertificate the
	// server speaks HTTP without TLS, behind a proxy on the same machine.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// DrainTime is how long the server goes on accepting connections after [Server.Drain]. Zero outside of a Pod, where
	// no load balancer knows the server.
	DrainTime time.Duration
	Log       *slog.Logger
	// Fail is called at most once, if the listener fails.
	Fail func(error)
}

// answerTimeout is how long requests may take to be answered after the listener is closed. An API server waits at most
// 30 s for a webhook
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#timeouts).
const answerTimeout = 30 * time.Second

// maxConnections bounds the open connections without a call. Each takes 45 KB. An API server keeps a few open, and one
// for each call in flight.
const maxConnections = 256

// Server answers the calls of API servers. Its methods are safe for concurrent use.
type Server struct {
	options  Options
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup

	isDraining atomic.Bool
	// drainEnd is closed at the end of DrainTime.
	drainEnd  chan struct{}
	drainOnce sync.Once

	connections *connections
}

// Serve answers requests on a listener by a handler, until [Server.Close]. The protocol is HTTP/1.1 over TLS 1.2 or
// later.
func Serve(listener net.Listener, handler http.Handler, options Options) *Server {
	s := &Server{options: options, listener: listener, drainEnd: make(chan struct{}), connections: newConnections()}
	s.http = &http.Server{
		Handler: s.drainingHandler(handler),
		// An API server sends its request at once. A body has some megabytes at most.
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      answerTimeout + 10*time.Second,
		// An API server closes a connection that was idle for 90 s. The server must not do so first.
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ConnState:      s.connections.recordState,
		TLSNextProto:   map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2
		ErrorLog:       slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
	}
	connlimit.New(maxConnections).Apply(s.http)
	var connections net.Listener = connListener{listener}
	if options.GetCertificate != nil {
		connections = tls.NewListener(connections, &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: options.GetCertificate, NextProtos: []string{"http/1.1"},
		})
	}
	s.serving.Go(func() {
		if err := s.http.Serve(connections); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			options.Fail(fmt.Errorf("serve webhooks on %s: %w", listener.Addr(), err))
		}
	})
	return s
}

// drainingHandler returns a handler whose answers close their connections while the server drains.
func (s *Server) drainingHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&drainWriter{ResponseWriter: w, isDraining: &s.isDraining}, r)
	})
}

// drainWriter sets the header Connection of an answer at the last moment: the drain may begin while the handler works.
type drainWriter struct {
	http.ResponseWriter
	isDraining *atomic.Bool
	// hasBegun is true when the header has been written.
	hasBegun bool
}

// WriteHeader begins the answer.
func (w *drainWriter) WriteHeader(code int) {
	w.hasBegun = true
	if w.isDraining.Load() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write writes a part of the answer.
func (w *drainWriter) Write(part []byte) (int, error) {
	if !w.hasBegun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(part)
}

// Unwrap returns the writer, for http.ResponseController.
func (w *drainWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Drain begins the end of the server. Its answers close their connections from now on. Drain returns at once, and does
// nothing if the server drains already.
func (s *Server) Drain() {
	s.drainOnce.Do(func() {
		s.isDraining.Store(true)
		time.AfterFunc(s.options.DrainTime, func() { close(s.drainEnd) })
	})
}

// Close drains the server, waits until the time for draining has ended, and closes all connections, each after its
// answer. If ctx ends before, Close cuts what is left.
func (s *Server) Close(ctx context.Context) {
	s.Drain()
	select {
	case <-s.drainEnd:
	case <-ctx.Done():
	}
	_ = s.listener.Close() // Shutdown would close idle connections too, with the requests that arrive on them
	s.serving.Wait()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	s.connections.closeAll(ctx)
	_ = s.http.Close()
}
