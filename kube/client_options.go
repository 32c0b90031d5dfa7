package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// ClientOption changes what [NewClient] returns.
type ClientOption func(*clientOptions)

type clientOptions struct {
	timeout time.Duration
	writes  int
	warn    func(context.Context, *wire.Request, string)
	// wraps holds the functions of AboveTransport, the innermost first.
	wraps []func(wire.Handler) wire.Handler
}

// Timeout sets how long the server may be silent before a request fails: until its answer
// begins, all repetitions included, and between two parts of the answer. A watch must begin
// within d. Default: the timeout of the configuration, else 30 s. A d of 0 or less means 30 s.
func Timeout(d time.Duration) ClientOption { return func(o *clientOptions) { o.timeout = d } }

// LimitWrites sets how many writes are in flight at a time, of this client and of all clients
// that are derived from it together. Further writes wait for a place until their context ends. No
// [Timeout] counts during this wait. A write that waits to be repeated holds no place. Reads and
// watches are not limited. Default: 64. A number below 1 means 1.
func LimitWrites(n int) ClientOption { return func(o *clientOptions) { o.writes = n } }

// OnWarning sets a function that receives each warning of the server about a request, such as a warning
// about a deprecated version. Several goroutines call f, each with the context of its request. A nil f
// drops the warnings. Default: each text is logged once, with the context of its request.
func OnWarning(f func(ctx context.Context, r *wire.Request, text string)) ClientOption {
	return func(o *clientOptions) { o.warn = f }
}

// AboveTransport puts a handler directly above the transport, below the repetition of requests and
// [LimitWrites]. So each attempt to send a request passes the handler. If the handler returns an error
// other than an [*wire.Error], the request ends and is not repeated. The last of several such options makes the
// outermost handler.
func AboveTransport(wrap func(next wire.Handler) wire.Handler) ClientOption {
	return func(o *clientOptions) { o.wraps = append(o.wraps, wrap) }
}

// maxWarnings bounds how many different texts of warnings a client remembers.
const maxWarnings = 256

// warnOnce returns a function that logs each text once. It forgets all texts after maxWarnings
// different ones.
func warnOnce() func(context.Context, *wire.Request, string) {
	var mu sync.Mutex
	logged := make(map[string]bool)
	return func(ctx context.Context, r *wire.Request, text string) {
		mu.Lock()
		before := logged[text]
		if len(logged) >= maxWarnings {
			clear(logged)
		}
		logged[text] = true
		mu.Unlock()
		if !before {
			slog.WarnContext(ctx, "the server warns", "verb", r.Verb, "resource", r.Resource.String(), "warning", text)
		}
	}
}
