package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// Client puts types on top of a [wire.Handler]. It is immutable and safe for concurrent use.
//
// A client in a reconcile reads from a cache what the sources of the controller cover. [Client.Live] asks the server. A
// layer between a program and the server wraps the handler: see [Client.With].
type Client struct {
	handler wire.Handler
	scope   scope
	manager string
	// isLive is true if no cache may answer.
	isLive  bool
	pruner  *pruner
	decoder decoder
	// kinds has the resources of kinds without a Go type.
	kinds *kindTable
}

// NewClient returns a client of the server that config names. The client shares its connections with no
// other client. Requests are not throttled, because the server's priority and fairness does that job. The
// user agent is the program's name and /yare if config has none. NewClient reads the files of config, and
// sends no request. It returns an error if config is nil or not valid, or if a file cannot be used.
func NewClient(config *Config) (*Client, error) {
	if config == nil {
		return nil, errors.New("the configuration is nil: load one with kube.ConfigSource")
	}
	config = config.Clone()
	if config.MaxWrites < 0 {
		return nil, fmt.Errorf("kube.Config.MaxWrites is %d: set 1 or more, or 0 for the default", config.MaxWrites)
	}
	if config.MaxWrites == 0 {
		config.MaxWrites = 64
	}
	if config.Timeout <= 0 {
		config.Timeout = 30 * time.Second
	}
	if config.OnWarning == nil {
		config.OnWarning = warnOnce()
	}
	program := filepath.Base(os.Args[0])
	if config.UserAgent == "" {
		config.UserAgent = program + "/yare"
	}
	t, err := newTransport(config, config.Timeout, config.OnWarning)
	if err != nil {
		return nil, err
	}
	// A request passes retry, limitWrites, permanentErrors, the handlers of WrapAttempts and the transport. In the list in
	// docs/architecture.md these handlers are the numbers 12 to 15. The transport comes after the list, and has no number.
	var attempts wire.Handler = t
	if config.WrapAttempts != nil {
		attempts = permanentErrors(config.WrapAttempts(attempts))
	}
	h := retry{next: limitWrites(config.MaxWrites, attempts), timeout: config.Timeout}
	return NewClientFromHandler(h).WithFieldManager(program), nil
}

// permanentErrors returns a handler that calls next. An error of next that is no [*wire.Error] becomes the cause
// of a permanent Error about the request.
func permanentErrors(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		response, err := next.Do(ctx, r)
		if _, ok := AsError(err); err != nil && !ok {
			e := wire.NewError(r)
			e.Err, e.Permanent = err, true
			err = e
		}
		return response, err
	})
}

// NewClientFromHandler returns a client on top of any Handler. The client neither repeats nor limits
// requests. Its field manager is yare.
func NewClientFromHandler(h wire.Handler) *Client {
	return &Client{handler: h, manager: "yare", pruner: newPruner(), decoder: newDecoder(), kinds: new(kindTable)}
}

// With returns a client whose requests pass first through the handler from wrap. next is the handler of c.
// With calls wrap once.
func (c *Client) With(wrap func(next wire.Handler) wire.Handler) *Client {
	d := *c
	d.handler = wrap(c.handler)
	return &d
}

// WithFieldManager returns a client whose writes are recorded under this name in the
// managedFields of objects. Two programs that apply the same object under one name remove each other's
// fields. Default: the name of the program.
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
	d.scope = c.scope.narrow(namespaces)
	return &d
}

// AllNamespaces returns a client for which "all namespaces" means all namespaces of the cluster,
// as it does by default.
func (c *Client) AllNamespaces() *Client {
	d := *c
	d.scope.namespaces, d.scope.err = nil, nil
	return &d
}

// Namespaces returns the namespaces that the client is narrowed to, sorted. A client of all namespaces
// returns none.
func (c *Client) Namespaces() []string { return slices.Clone(c.scope.namespaces) }

// InCluster returns a client whose requests carry the name of another cluster. Today the name is always empty, which
// means the home cluster: a client of [NewClient] has one server only, and refuses other names. A Handler of the
// program's own can pass such requests on to another cluster.
func (c *Client) InCluster(cluster string) *Client {
	if c.scope.cluster == cluster {
		return c
	}
	d := *c
	d.scope.cluster = cluster
	return &d
}

// Live returns a client whose reads are answered by the server and never by a cache. It is for decisions that
// need the newest state, and for objects read once. The writes of the returned client count for the reads of
// c, as the writes of c do. In a reconcile each apply is sent, even if it would change nothing.
func (c *Client) Live() *Client {
	d := *c
	d.isLive = true
	return &d
}

// Do passes a request through the handlers of the client. A request without a cluster gets the client's
// cluster. A client of [Client.Live] sets the field Live of the request. Do does not change r, but passes on a copy.
func (c *Client) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	lacksCluster, lacksLive := r.Cluster == "" && c.scope.cluster != "", c.isLive && !r.Live
	if lacksCluster || lacksLive {
		changed := *r
		if lacksCluster {
			changed.Cluster = c.scope.cluster
		}
		changed.Live = changed.Live || lacksLive
		r = &changed
	}
	return c.handler.Do(ctx, r)
}

// guardedApplyRequest returns the apply of obj for a target. An apply that would make a foreign object a child is an
// error.
func (c *Client) guardedApplyRequest(
	ctx context.Context, t target, obj Object, options []ApplyOption,
) (*wire.Request, error) {
	r, err := t.applyRequest(c, obj, options)
	if err != nil {
		return nil, err
	}
	if t.subresource == "" && t.hasStatus && !t.hasStatusSubresource && c.pruner.setsStatus(obj) {
		isIgnored, err := c.kinds.hasStatusSubresource(ctx, c, t.resource)
		if err != nil {
			return nil, fmt.Errorf("apply %s: find out whether its status has a subresource: %w", r.Ref(), err)
		}
		t.sendsStatus = !isIgnored
		if r, err = t.applyRequest(c, obj, options); err != nil {
			return nil, err
		}
	}
	if h, ok := c.handler.(childGuardHandler); ok && h.HasChildGuard() {
		return r, nil
	}
	return r, guardChild(ctx, c, r, obj)
}

// ApplyStatus declares the status of obj, and nothing else of it. An empty status removes the
// fields that this manager applied before.
//
// Unlike an object of Apply, obj must have been read. Its uid and its resourceVersion are preconditions, so that
// ApplyStatus does not overwrite the status of another object of the name, or a status that somebody else has written
// meanwhile. A change of other parts of the object is no obstacle. ApplyStatus reads the live version and repeats the
// write, at most four times, while the object has the uid and the generation of obj, and the fields of this manager in
// the status have not changed. Otherwise ApplyStatus returns the conflict: see [IsConflict].
//
// After a success obj has the managedFields of the answer. If nothing but the status has changed
// since obj was read, obj also has the resourceVersion of the answer, so that further writes of obj
// do not conflict with this one. A dry run does not change obj. obj must not be used by another
// goroutine meanwhile.
func (c *Client) ApplyStatus(ctx context.Context, obj Object, options ...ApplyOption) error {
	t, err := c.targetOf(ctx, wire.VerbPatch, obj)
	if err != nil {
		return err
	}
	t = t.in(c, obj.GetNamespace())
	t.subresource = "status"
	switch err := t.requireName(wire.VerbPatch, obj.GetName()); {
	case !t.hasStatus:
		return fmt.Errorf("apply the status of %s: %s has none", t.resource, ident.GoTypeName(reflect.TypeOf(obj).Elem()))
	case err != nil:
		return err
	case obj.GetUID() == "":
		return fmt.Errorf("apply the status of %s %s: it has no uid: read the object first, or use what Apply returned",
			t.resource, ident.Quoted(obj.GetNamespace(), obj.GetName()))
	}
	return c.applyError(t.resource, obj, statusApply{c, newApplier(t, c), obj, options}.run(ctx))
}

// Delete deletes obj. If obj has a uid, only the object of that uid is deleted; otherwise the object
// of its name is deleted. If the object is gone already, [IsNotFound] reports the error. If another
// object has the name, [IsUIDConflict] reports the error. [IgnoreNotFound] drops both errors.
func (c *Client) Delete(ctx context.Context, obj Object, options ...DeleteOption) error {
	t, err := c.targetOf(ctx, wire.VerbDelete, obj)
	if err != nil {
		return err
	}
	if uid := obj.GetUID(); uid != "" {
		options = append([]DeleteOption{RequireUID(uid)}, options...)
	}
	t.representation = wire.Full // a projection can be deleted too
	return c.forgetUnservedKind(t.resource, deleteObject(ctx, c, t.in(c, obj.GetNamespace()), obj.GetName(), options))
}

// kindTable returns the table of c. It returns nil for a nil client, whose use is an error of its own.
func (c *Client) kindTable() *kindTable {
	if c == nil {
		return nil
	}
	return c.kinds
}

// targetOf returns the target of the kind of obj, in no namespace. For an object whose Go type stands for any kind,
// discovery finds the resource.
func (c *Client) targetOf(ctx context.Context, verb wire.Verb, obj Object) (target, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer || !ident.StandsForAnyKind(t.Elem()) {
		known := c.kindTable().targetOf(t, func() (Type, error) { return TypeOfObject(obj) })
		if known.err == nil && reflect.ValueOf(obj).IsNil() {
			known.err = fmt.Errorf("%s %s: the object is nil", verb, known.resource)
		}
		return known, known.err
	}
	if c == nil || reflect.ValueOf(obj).IsNil() {
		return target{}, fmt.Errorf("%s an object of the type %s: the client or the object is nil", verb, t)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" {
		return target{}, fmt.Errorf("%s %s: its apiVersion or its kind is empty",
			verb, ident.Quoted(obj.GetNamespace(), obj.GetName()))
	}
	r, err := c.kinds.find(ctx, c, gvk)
	if err != nil {
		return target{}, fmt.Errorf("%s %s %s: %w", verb, gvk.Kind, ident.Quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	return target{resource: r, hasStatus: true}, nil
}

// applyError returns the error of an apply of obj to a resource, which failed with err. It is nil if err is nil.
func (c *Client) applyError(r wire.Resource, obj Object, err error) error {
	if err == nil {
		return nil
	}
	err = addUndeclaredField(r, c.forgetUnservedKind(r, addObjectName(err, obj)))
	return unsetStructs{&c.pruner.table}.addTo(obj, err)
}

// forgetUnservedKind returns err. If err reports that the server does not serve the resource r, the next write of an
// object of that kind asks discovery for the resource. A 404 for the object alone has no such effect: the deletion of
// an object that is gone would cost a request of discovery each time.
func (c *Client) forgetUnservedKind(r wire.Resource, err error) error {
	if err != nil && IsNoResource(err) {
		c.kinds.forget(c.scope.cluster, r.GroupVersionKind)
	}
	return err
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
		isLogged := logged[text]
		if len(logged) >= maxWarnings {
			clear(logged)
		}
		logged[text] = true
		mu.Unlock()
		if !isLogged {
			slog.WarnContext(ctx, "the server warns", "verb", r.Verb, "resource", r.Resource.String(), "warning", text)
		}
	}
}
