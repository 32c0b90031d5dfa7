package operator

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/internal/logctx"
)

// pages are what a program serves:
//
//	/healthz  200 while the program runs, 503 after the loss of its lease
//	/readyz   200 when the program is ready, else 503 and what is missing
//	/metrics  the metrics, for Prometheus
//
// and the pages that the Handlers of [Program] serve.
type pages struct {
	// mux has all pages, and probes has only the health.
	mux, probes *http.ServeMux
	log         *slog.Logger
	// readiness and builtInMetrics are set before the first request.
	readiness      *readiness
	builtInMetrics io.WriterTo
	// ownMetrics write the metrics of the author.
	ownMetrics []func(io.Writer) error
}

// newPages returns the pages of a program. handlers are those of the author, by pattern. ownMetrics may be nil. isLost
// reports whether the program has lost its lease.
func newPages(
	handlers map[string]http.Handler, ownMetrics func(io.Writer), isLost func() bool, log *slog.Logger,
) (*pages, error) {
	p := &pages{mux: http.NewServeMux(), probes: http.NewServeMux(), log: log}
	if ownMetrics != nil {
		p.ownMetrics = append(p.ownMetrics, func(w io.Writer) error { ownMetrics(w); return nil })
	}
	for _, mux := range []*http.ServeMux{p.mux, p.probes} {
		mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
			if isLost() {
				writeText(w, http.StatusServiceUnavailable, "the lease is lost: the program ends\n")
				return
			}
			writeText(w, http.StatusOK, "ok\n")
		})
		mux.HandleFunc("GET /readyz", p.serveReady)
	}
	p.mux.HandleFunc("GET /metrics", p.serveMetrics)
	for _, pattern := range slices.Sorted(maps.Keys(handlers)) {
		if err := p.addPage(pattern, handlers[pattern]); err != nil {
			return nil, fmt.Errorf("the field Handlers of operator.Program: %w", err)
		}
	}
	return p, nil
}

// addPage adds a page of the author or of a feature. It returns an error if the pattern or the handler is not valid.
func (p *pages) addPage(pattern string, handler http.Handler) (err error) {
	_, path, _ := strings.Cut(pattern, "/")
	switch {
	case handler == nil:
		return fmt.Errorf("the handler of the pattern %q is nil: leave the pattern out", pattern)
	case slices.Contains([]string{"metrics", "healthz", "readyz"}, path):
		return fmt.Errorf("the pattern %q is that of a built-in page: give the handler another path", pattern)
	}
	defer func() {
		// http.ServeMux reports by a panic a pattern that is not valid or conflicts with another pattern.
		if value := recover(); value != nil {
			err = fmt.Errorf("the pattern %q: %v", pattern, value)
		}
	}()
	p.mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer p.logPanic("the handler of " + pattern)
		handler.ServeHTTP(w, r)
	}))
	return nil
}

// logPanic logs the panic of the deferring function, and ends the request. A client sees that
// the answer has been broken off.
func (p *pages) logPanic(what string) {
	value := recover()
	if value == nil {
		return
	}
	if value != http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
		p.log.Error(what+" panicked", "error", fmt.Sprint(value), "at", logctx.PanicSite(), "stack", logctx.PanicStack())
	}
	panic(http.ErrAbortHandler)
}

// serveReady answers whether the program is ready.
func (p *pages) serveReady(w http.ResponseWriter, _ *http.Request) {
	if reasons := p.readiness.unreadyReasons(); len(reasons) > 0 {
		writeText(w, http.StatusServiceUnavailable, strings.Join(reasons, "\n")+"\n")
		return
	}
	writeText(w, http.StatusOK, strings.Join(append([]string{"ok"}, p.readiness.leftOutLines()...), "\n")+"\n")
}

// serveMetrics answers with all metrics.
func (p *pages) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = p.builtInMetrics.WriteTo(w) // it fails only if the client has gone
	for _, write := range p.ownMetrics {
		_, _ = w.Write(p.ownMetricsText(write)) // it fails only if the client has gone
	}
}

// ownMetricsText returns the author's metrics, or nothing if their function panics.
func (p *pages) ownMetricsText(write func(io.Writer) error) (text []byte) {
	defer func() {
		if value := recover(); value != nil {
			text = nil
			p.log.Error("the metrics of the program panicked", "error", fmt.Sprint(value), "at", logctx.PanicSite(),
				"stack", logctx.PanicStack())
		}
	}()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		p.log.Error("some metrics of the program are left out", "error", err)
	}
	return b.Bytes()
}

// writeText answers with text.
func writeText(w http.ResponseWriter, code int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // it fails only if the client has gone
}
