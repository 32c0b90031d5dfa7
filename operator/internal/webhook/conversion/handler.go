package conversion

import (
	"context"
	"log/slog"
	"net/http"
)

// Options are what a Handler needs besides its kinds. All of them have defaults.
type Options struct {
	// Logger is the logger of the program. Default: slog.Default().
	Logger *slog.Logger
	// Observer counts calls and conversions. Default: nobody does.
	Observer Observer
	// MaxCalls bounds the calls of each kind in flight. Default: 64.
	MaxCalls int
}

// A Handler answers the calls of the API server that convert objects. A Handler is safe for concurrent use.
type Handler struct{}

// NewHandler returns a Handler of kinds. It returns an error if two kinds have one path.
func NewHandler(kinds []*Kind, options Options) (*Handler, error) { panic("not yet") }

// HasPath reports whether the path of a URL is the path of a kind of h.
func (h *Handler) HasPath(path string) bool { panic("not yet") }

// Wait waits until no call is in flight. It returns an error if ctx ends before. The caller stops the server first.
func (h *Handler) Wait(ctx context.Context) error { panic("not yet") }

// ServeHTTP answers a call.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { panic("not yet") }
