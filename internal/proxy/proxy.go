// Package proxy is the reverse proxy in front of an API server. yaretest, explorations and bench use it.
//
// A program reaches the server through a [Session], which has a token and a kubeconfig of its own. Each request and its
// answer are an [Exchange], which passes the hooks of the proxy and is recorded:
//
//	             token            journal                           rights of Options.Target
//	program ──► Session ──► Exchange ──► Hook ──► Hook ──► … ──► Upstream ──► API server
//	        ◄── CutOff   ◄── Code    ◄── RoundTrip      ◄──  Answered    ◄──
//
// A [Hook] refuses, changes, delays or breaks what passes. Example: a hook that refuses all deletions.
//
//	func (noDeletions) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
//		if x.Verb == wire.VerbDelete {
//			return proxy.Answer(proxy.NewStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no deletions")), nil
//		}
//		return next(r)
//	}
//
//	p, err := proxy.New(proxy.Options{Target: config, Hooks: []proxy.Hook{noDeletions{}}})
//	session, err := p.NewSession("operator")
//	err = os.WriteFile("kubeconfig", session.Kubeconfig(), 0o600)
//
// The package has the hooks that explorations need besides faults: [Confinement] confines a program to a namespace,
// [JSONAnswers] makes answers readable, [WriteRecorder] records what writes have led to, [ReadRecorder] records which
// versions a program has read, and [Watches] passes watches through a [Gate], event by event. Package faults has the
// faults, as one hook and gate.
//
// With Options.HasPoints each request has a [Point], a name that is the same in another run.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
)

// Options are the settings of a [Proxy].
type Options struct {
	// Target is the API server, with the rights that requests through the proxy have. Credentials in the requests
	// are dropped.
	Target *kube.Config
	// Namespace is the namespace in kubeconfigs. Default: none.
	Namespace string
	// HasPoints is true if requests get complete points. Otherwise points have no hashes, and names as they are.
	HasPoints bool
	// Normalize replaces the random parts of a name in points by asterisks. Several goroutines call it at
	// the same time. Default: names stay as they are.
	Normalize func(name string) string
	// Hooks intervene in exchanges. The first one sees a request first, and its answer last.
	Hooks []Hook
}

// Hook intervenes in the exchanges of a proxy. It is safe for concurrent use.
type Hook interface {
	// RoundTrip returns the answer to a request: the answer of next, or another one. An error breaks the
	// connection of the program, or its request if the program speaks HTTP/2. The URL of r has no host. RoundTrip
	// may change r.
	RoundTrip(x *Exchange, r *http.Request, next Next) (*http.Response, error)
}

// HookFunc is a function that is a [Hook].
type HookFunc func(x *Exchange, r *http.Request, next Next) (*http.Response, error)

// RoundTrip calls the function.
func (f HookFunc) RoundTrip(x *Exchange, r *http.Request, next Next) (*http.Response, error) {
	return f(x, r, next)
}

// PassThrough passes a request through hooks, and then to last.
func PassThrough[H Hook](hooks []H, x *Exchange, r *http.Request, last Next) (*http.Response, error) {
	if len(hooks) == 0 {
		return last(r)
	}
	return hooks[0].RoundTrip(x, r,
		func(r *http.Request) (*http.Response, error) { return PassThrough(hooks[1:], x, r, last) })
}

// Next passes a request on to the next hook, or to the API server.
type Next func(*http.Request) (*http.Response, error)

// ErrBroken is the error of a hook that breaks the connection of a program.
var ErrBroken = errors.New("the connection was broken")

// Proxy is a reverse proxy in front of an API server. It serves HTTPS on the loopback address, with HTTP/2 and
// HTTP/1.1. Its methods are safe for concurrent use.
type Proxy struct {
	options Options
	server  *loopback.Server
	target  *Upstream
	forward *httputil.ReverseProxy
	journal *journal
	// handlers counts the requests that are served.
	handlers sync.WaitGroup

	mu       sync.Mutex
	isClosed bool
	sessions map[string]*Session // by token
}

// New starts a proxy. The caller calls Close.
func New(o Options) (*Proxy, error) {
	if o.Target == nil {
		return nil, errors.New("Options.Target is nil: name the API server")
	}
	target, err := NewUpstream(o.Target)
	if err != nil {
		return nil, err
	}
	var m *mask
	if o.HasPoints {
		m = newMask(o.Namespace, o.Normalize)
	}
	p := &Proxy{options: o, target: target, journal: newJournal(m), sessions: map[string]*Session{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header.Del("Authorization") // the upstream adds its own
		},
		Transport:     roundTripper(p.roundTrip),
		FlushInterval: -1, // so that each event of a watch is forwarded at once
		// If the server gives no answer, the client gets none either: its connection breaks.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0), // clients are killed while they connect
	}
	if p.server, err = loopback.Start(http.HandlerFunc(p.serve)); err != nil {
		return nil, err
	}
	return p, nil
}

// Close cuts all sessions off, and returns when all requests have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.isClosed = true
	for _, s := range p.sessions {
		s.CutOff()
	}
	p.mu.Unlock()
	p.server.Close()
	p.handlers.Wait()
	p.target.CloseIdleConnections()
}

// NewSession returns a new session. The name stands in [RequestRecord.Session].
func (p *Proxy) NewSession(name string) (*Session, error) {
	s := newSession(name, p.options.Namespace, p.server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return nil, errors.New("the proxy is closed")
	}
	p.sessions[s.token] = s
	return s, nil
}

// Requests returns the records of all requests so far, in the order in which the requests came. Requests of sessions
// that were cut off before are not included.
func (p *Proxy) Requests() []RequestRecord { return p.journal.requests() }

// Activity returns the present activity of requests.
func (p *Proxy) Activity() Activity { return p.journal.activity() }

// SetStep sets the step of the user to which the next requests belong. Their points are counted from 1. The step is -1
// before the first call.
func (p *Proxy) SetStep(step int) { p.journal.setStep(step) }

// serve serves a request of a program. A panic with http.ErrAbortHandler breaks the connection, or
// the request if the program speaks HTTP/2.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	session, isOpen := p.enter(r)
	if !isOpen {
		panic(http.ErrAbortHandler)
	}
	defer p.handlers.Done()
	if session == nil {
		writeStatus(w,
			NewStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the proxy does not know the token"))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := newExchange(session, p.journal, r, body)
	if !session.begin(x, cancel) {
		panic(http.ErrAbortHandler)
	}
	defer session.end(x)
	p.journal.begin(x)
	defer p.journal.end(x)
	p.forward.ServeHTTP(w, withBody(r.Clone(context.WithValue(ctx, exchangeKey{}, x)), body))
}

// enter returns the session of a request, or nil for an unknown token. It reports whether the proxy is open. If so, the
// caller calls handlers.Done.
func (p *Proxy) enter(r *http.Request) (s *Session, isOpen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return nil, false
	}
	p.handlers.Add(1)
	return p.sessions[loopback.Token(r)], true
}

// roundTrip passes a request through the hooks, and then to the server.
func (p *Proxy) roundTrip(r *http.Request) (*http.Response, error) {
	x := r.Context().Value(exchangeKey{}).(*Exchange)
	response, err := PassThrough(p.options.Hooks, x, r, func(r *http.Request) (*http.Response, error) {
		x.Record(func(r *RequestRecord) { r.Sent = time.Now() })
		response, err := p.target.RoundTrip(r)
		if err == nil {
			x.Record(func(r *RequestRecord) { r.Answered = time.Now() })
		}
		return response, err
	})
	if err != nil {
		return nil, err
	}
	x.Record(func(r *RequestRecord) { r.Code = response.StatusCode })
	return response, nil
}

// exchangeKey is the key of the exchange in the context of a request.
type exchangeKey struct{}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// withBody gives a request a body that was read. By GetBody the transport can send the request again on a new
// connection.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}
