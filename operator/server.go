package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/yare-go/yare/operator/internal/metrics"
)

// server serves health and metrics of the program, over HTTP without TLS:
//
//	/healthz  200 while the program runs
//	/readyz   200 when the program is ready, else 503 and what is missing
//	/metrics  the figures, for Prometheus
type server struct {
	listener net.Listener
	http     *http.Server
	served   chan error
}

// shutdownTimeout is how long requests that are being answered may take at the end.
const shutdownTimeout = time.Second

// listen opens an address, such as :8080. Requests may arrive from then on. They are answered
// after [serve].
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on the address that --listen gives: %w", err)
	}
	return listener, nil
}

// serve answers requests until [server.close]. If the listener fails, it calls failed with
// the reason.
func serve(listener net.Listener, ready *readiness, f *figures, log *slog.Logger, failed func(error)) *server {
	s := &server{listener: listener, served: make(chan error, 1)}
	s.http = &http.Server{
		Handler: newHandler(ready, f),
		// Requests are small, and clients are quick.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		err := s.http.Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("serve health and metrics on %s: %w", listener.Addr(), err))
		}
		s.served <- err
	}()
	return s
}

// close ends the server. Requests that are being answered get a short time.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.served //nolint:errcheck // serve has reported it
}

// newHandler returns the handler of the paths that server lists.
func newHandler(ready *readiness, f *figures) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if missing := ready.missing(); len(missing) > 0 {
			writeText(w, http.StatusServiceUnavailable, strings.Join(missing, "\n")+"\n")
			return
		}
		writeText(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", metrics.ContentType)
		_, _ = f.WriteTo(w) // the client has gone
	})
	return mux
}

// writeText answers with text.
func writeText(w http.ResponseWriter, code int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // the client has gone
}
