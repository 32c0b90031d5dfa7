package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/yare-go/yare/operator/internal/connlimit"
)

// server serves the pages of the program.
type server struct {
	listener net.Listener
	http     *http.Server
	served   chan error
}

// shutdownTimeout is how long requests that are being answered may take at the end.
const shutdownTimeout = time.Second

// maxConnections bounds the connections to the pages of a program. Prometheus and the kubelet need a few.
const maxConnections = 64

// serve answers requests by handler until [server.close]. If the listener fails, serve calls
// failed with the reason.
func serve(listener net.Listener, handler http.Handler, log *slog.Logger, failed func(error)) *server {
	s := &server{listener: listener, served: make(chan error, 1)}
	s.http = &http.Server{
		Handler: handler,
		// Requests are small, and clients are quick.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	connlimit.New(maxConnections).Apply(s.http)
	go func() {
		err := s.http.Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("serve health and metrics on %s: %w", listener.Addr(), err))
		}
		s.served <- err
	}()
	return s
}

// close ends the server. Requests that are being answered have shutdownTimeout to end.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.served //nolint:errcheck // serve has reported it
}
