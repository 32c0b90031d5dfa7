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

	"k8s.io/client-go/rest"
)

// Client is a [Handler] with types on top. It is immutable, and safe for concurrent use.
type Client struct {
	handler    Handler
	cluster    string
	manager    string
	namespaces []string
	prune      *pruner
}

// ClientOption changes what [NewClient] makes.
type ClientOption func(*clientOptions)

type clientOptions struct {
	timeout time.Duration
	writes  int
	warn    func(*Request, string)
}

// Timeout sets how long the server may be silent before a request fails: until its answer
// begins, all repetitions included, and between two parts of the answer. A watch must begin
// within it. Default: the timeout of the configuration, else 30 s.
func Timeout(d time.Duration) ClientOption { return func(o *clientOptions) { o.timeout = d } }

// LimitWrites sets how many writes are in flight at a time, of this client and of all that
// are derived from it. Further writes wait for a place, for which no [Timeout] counts, or
// until their context ends. A write that waits to be repeated holds no place. Reads and
// watches are not limited. Default: 64. A number below 1 means 1.
func LimitWrites(n int) ClientOption { return func(o *clientOptions) { o.writes = n } }

// OnWarning is called with each remark that the server makes on a request, such as that
// its version is deprecated; concurrently; nil drops them. Default: each text is logged once.
func OnWarning(f func(r *Request, text string)) ClientOption {
	return func(o *clientOptions) { o.warn = f }
}

// NewClient talks to the server that config names. Credentials, TLS and proxies are up to
// client-go; its throttling is not used, because the server's priority and fairness does
// that job. The user agent is the program's name if config has none.
func NewClient(config *rest.Config, options ...ClientOption) (*Client, error) {
	if config == nil {
		return nil, errors.New("the configuration is nil: load one with kube.ConfigSource")
	}
	config = rest.CopyConfig(config)
	o := clientOptions{timeout: config.Timeout, writes: 64, warn: warnOnce()}
	config.Timeout = 0 // it would end watches too
	for _, option := range options {
		option(&o)
	}
	if o.timeout <= 0 {
		o.timeout = 30 * time.Second
	}
	if o.warn == nil {
		o.warn = func(*Request, string) {}
	}
	program := filepath.Base(os.Args[0])
	if config.UserAgent == "" {
		config.UserAgent = program + "/yare"
	}
	t, err := newTransport(config, o.timeout, o.warn)
	if err != nil {
		return nil, err
	}
	return NewClientFromHandler(retry{next: limitWrites(o.writes, t), limit: o.timeout}).WithFieldManager(program), nil
}

// NewClientOf puts types on top of any Handler.
func NewClientFromHandler(h Handler) *Client {
	return &Client{handler: h, manager: "yare", prune: newPruner()}
}

func warnOnce() func(*Request, string) {
	var said sync.Map
	return func(r *Request, text string) {
		if _, before := said.LoadOrStore(text, true); !before {
			slog.Warn("the server warns", "verb", r.Verb, "resource", r.Resource.String(), "warning", text)
		}
	}
}

// With is a client whose requests pass through wrap first.
func (c *Client) With(wrap func(next Handler) Handler) *Client {
	d := *c
	d.handler = wrap(c.handler)
	return &d
}

// WithFieldManager is a client whose writes are recorded under this name in the
// managedFields of objects. Two that apply the same object under one name take each
// other's fields away. Default: the name of the program.
func (c *Client) WithFieldManager(name string) *Client {
	d := *c
	d.manager = name
	return &d
}

// FieldManager is the name that writes are recorded under.
func (c *Client) FieldManager() string { return c.manager }

// InNamespaces is a client for which "all namespaces" means these. With none, or with the
// empty name among them, it means all.
func (c *Client) InNamespaces(namespaces ...string) *Client {
	d := *c
	d.namespaces = nil
	if !slices.Contains(namespaces, "") {
		d.namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	}
	return &d
}

// Namespaces are those that the client is narrowed to; none means all.
func (c *Client) Namespaces() []string { return slices.Clone(c.namespaces) }

// InCluster is a client whose requests carry the name of another cluster, for a Handler
// that tells clusters apart. The home cluster's name is empty.
func (c *Client) InCluster(cluster string) *Client {
	d := *c
	d.cluster = cluster
	return &d
}

// Do passes a request through the pipeline.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	if r.Cluster == "" && c.cluster != "" {
		inCluster := *r
		inCluster.Cluster = c.cluster
		r = &inCluster
	}
	return c.handler.Do(ctx, r)
}
