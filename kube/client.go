package kube

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/kube/internal/jsonplan"
)

// Client puts types on top of a [Handler]. It is immutable and safe for concurrent use.
type Client struct {
	handler Handler
	cluster string
	manager string
	// live is true if no cache may answer.
	live       bool
	namespaces []string
	// namespacesErr is what is wrong with namespaces.
	namespacesErr error
	prune         *pruner
	decoder       *jsonplan.Decoder
}

// ClientOption changes what [NewClient] returns.
type ClientOption func(*clientOptions)

type clientOptions struct {
	timeout time.Duration
	writes  int
	warn    func(context.Context, *Request, string)
	// wraps holds the functions of AboveTransport, the innermost first.
	wraps []func(Handler) Handler
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

// OnWarning sets a function that receives each warning of the server about a request, such as
// one about a deprecated version. Several requests call it concurrently, each with its context. Nil drops
// the warnings. Default: each text is logged once, with the context of its request.
func OnWarning(f func(ctx context.Context, r *Request, text string)) ClientOption {
	return func(o *clientOptions) { o.warn = f }
}

// AboveTransport puts a handler directly above the transport, below the repetition of requests and
// [LimitWrites]. So each attempt to send a request passes the handler. An error of the handler that
// is no [*Error] ends the request, which is not repeated. The last of several such options
// makes the outermost handler.
func AboveTransport(wrap func(next Handler) Handler) ClientOption {
	return func(o *clientOptions) { o.wraps = append(o.wraps, wrap) }
}

// NewClient returns a client of the server that config names. The client has connections of its
// own. Requests are not throttled, because the server's priority and fairness does that job. The
// user agent is the program's name and /yare if config has none. NewClient reads the files of config,
// and sends no request. It returns an error if config is nil or not valid, or if a file cannot be used.
func NewClient(config *Config, options ...ClientOption) (*Client, error) {
	if config == nil {
		return nil, errors.New("the configuration is nil: load one with kube.ConfigSource")
	}
	config = config.Clone()
	o := clientOptions{timeout: config.Timeout, writes: 64, warn: warnOnce()}
	for _, option := range options {
		option(&o)
	}
	if o.timeout <= 0 {
		o.timeout = 30 * time.Second
	}
	if o.warn == nil {
		o.warn = func(context.Context, *Request, string) {}
	}
	program := filepath.Base(os.Args[0])
	if config.UserAgent == "" {
		config.UserAgent = program + "/yare"
	}
	t, err := newTransport(config, o.timeout, o.warn)
	if err != nil {
		return nil, err
	}
	var attempts Handler = t
	for _, wrap := range o.wraps {
		attempts = refusing(wrap(attempts))
	}
	return NewClientFromHandler(retry{next: limitWrites(o.writes, attempts), limit: o.timeout}).WithFieldManager(program), nil
}

// refusing returns a handler that calls next, and returns only errors about the request: an error that is
// no [*Error] becomes the cause of a permanent Error.
func refusing(next Handler) Handler {
	return HandlerFunc(func(ctx context.Context, r *Request) (*Response, error) {
		response, err := next.Do(ctx, r)
		if _, ok := AsError(err); err != nil && !ok {
			e := newError(r)
			e.Err, e.permanent = err, true
			err = e
		}
		return response, err
	})
}

// NewClientFromHandler returns a client on top of any Handler. The client neither repeats nor limits
// requests. Its field manager is yare.
func NewClientFromHandler(h Handler) *Client {
	return &Client{handler: h, manager: "yare", prune: newPruner(), decoder: newPlanDecoder()}
}

// mostWarnings bounds how many different texts of warnings a client remembers.
const mostWarnings = 256

// warnOnce returns a function that logs each text once. It forgets all texts after mostWarnings
// different ones.
func warnOnce() func(context.Context, *Request, string) {
	var mu sync.Mutex
	logged := make(map[string]bool)
	return func(ctx context.Context, r *Request, text string) {
		mu.Lock()
		before := logged[text]
		if len(logged) >= mostWarnings {
			clear(logged)
		}
		logged[text] = true
		mu.Unlock()
		if !before {
			slog.WarnContext(ctx, "the server warns", "verb", r.Verb, "resource", r.Resource.String(), "warning", text)
		}
	}
}

// With returns a client whose requests pass first through the handler that wrap returns. next is the
// handler of c. With calls wrap once.
func (c *Client) With(wrap func(next Handler) Handler) *Client {
	d := *c
	d.handler = wrap(c.handler)
	return &d
}

// WithFieldManager returns a client whose writes are recorded under this name in the
// managedFields of objects. Two managers of one name that apply the same object remove each
// other's fields. Default: the name of the program.
func (c *Client) WithFieldManager(name string) *Client {
	d := *c
	d.manager = name
	return &d
}

// FieldManager returns the name that writes are recorded under.
func (c *Client) FieldManager() string { return c.manager }

// InNamespaces returns a client for which "all namespaces" means these namespaces. If no namespace is
// named, or one is empty, each use of all namespaces is an error. See [Client.AllNamespaces].
func (c *Client) InNamespaces(namespaces ...string) *Client {
	d := *c
	d.namespaces, d.namespacesErr = slices.Compact(slices.Sorted(slices.Values(namespaces))), nil
	switch {
	case len(namespaces) == 0:
		d.namespacesErr = errors.New("the client is narrowed to no namespaces: name at least one, or use Client.AllNamespaces")
	case slices.Contains(namespaces, ""):
		d.namespacesErr = errors.New("the client is narrowed to a namespace whose name is empty: name it, or use Client.AllNamespaces")
	}
	return &d
}

// AllNamespaces returns a client for which "all namespaces" means all namespaces of the cluster,
// as it does by default.
func (c *Client) AllNamespaces() *Client {
	d := *c
	d.namespaces, d.namespacesErr = nil, nil
	return &d
}

// Namespaces returns the namespaces that the client is narrowed to, sorted. A client of all namespaces
// returns none.
func (c *Client) Namespaces() []string { return slices.Clone(c.namespaces) }

// InCluster returns a client whose requests carry the name of another cluster. A Handler of the
// program must pass these requests on to that cluster: a client of [NewClient] has one server only,
// and refuses them. The home cluster's name is empty.
func (c *Client) InCluster(cluster string) *Client {
	d := *c
	d.cluster = cluster
	return &d
}

// Live returns a client whose reads are answered by the server and never by a cache. It is for
// decisions that must not rest on a state that may be older than the server's, and for objects that
// are read once. The writes of the returned client count for the reads of c, as the writes of c do. In a
// reconcile each apply is sent, even if it would change nothing.
func (c *Client) Live() *Client {
	d := *c
	d.live = true
	return &d
}

// Do passes a request through the handlers of the client. A request without a cluster gets the client's
// cluster. Do does not change r.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	inCluster, isLive := r.Cluster == "" && c.cluster != "", c.live && !r.Live
	if inCluster || isLive {
		changed := *r
		if inCluster {
			changed.Cluster = c.cluster
		}
		changed.Live = changed.Live || isLive
		r = &changed
	}
	return c.handler.Do(ctx, r)
}
