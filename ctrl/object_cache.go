package ctrl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// objectCache is a cache of controller-runtime over the streams of yare.
type objectCache struct {
	bridge   *Bridge
	scheme   *runtime.Scheme
	mapper   meta.RESTMapper
	selector *selector
	log      logr.Logger

	// started is closed when the informers have started.
	started chan struct{}

	mu        sync.Mutex
	isStarted bool
	isEnded   bool
	informers map[kindID]*informer
	// workers are the goroutines of all handlers.
	workers sync.WaitGroup
}

func newObjectCache(b *Bridge, config *rest.Config, o ctrlcache.Options) (*objectCache, error) {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Mapper == nil {
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("make a client for discovery: %w", err)
		}
		if o.Mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient); err != nil {
			return nil, fmt.Errorf("make a mapper of kinds: %w", err)
		}
	}
	selector, err := newSelector(o)
	if err != nil {
		return nil, err
	}
	return &objectCache{
		bridge: b, scheme: o.Scheme, mapper: o.Mapper, selector: selector, log: logf.Log.WithName("yare"),
		started: make(chan struct{}), informers: make(map[kindID]*informer),
	}, nil
}

// Start opens the streams of all informers, and closes them when ctx ends.
func (c *objectCache) Start(ctx context.Context) error {
	if err := c.startAll(); err != nil {
		return err
	}
	<-ctx.Done()
	c.end()
	c.workers.Wait()
	return nil
}

// startAll starts the informers that there are. Later ones start at once.
func (c *objectCache) startAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isStarted {
		return errors.New("the cache was started before")
	}
	c.isStarted = true
	for _, i := range c.informers {
		if err := i.start(); err != nil {
			return err
		}
	}
	close(c.started)
	return nil
}

// end stops all informers.
func (c *objectCache) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isEnded = true
	for _, i := range c.informers {
		i.stop()
	}
}

// NeedLeaderElection returns false: the cache is filled before the program leads.
func (c *objectCache) NeedLeaderElection() bool { return false }

// WaitForCacheSync waits until the cache has started, and all informers have listed their objects. It returns false if
// ctx ends first.
func (c *objectCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	c.mu.Lock()
	var informers []*informer
	for _, i := range c.informers {
		informers = append(informers, i)
	}
	c.mu.Unlock()
	return !slices.ContainsFunc(informers, func(i *informer) bool { return i.waitSynced(ctx) != nil })
}

// informerOf returns the informer of a kind. It makes one if there is none. It waits until the informer has listed its
// objects, unless the cache has not started.
func (c *objectCache) informerOf(ctx context.Context, id kindID, o ctrlcache.InformerGetOptions) (*informer, error) {
	i, isStarted, err := c.findOrMake(id)
	if err != nil || !isStarted || o.BlockUntilSynced != nil && !*o.BlockUntilSynced {
		return i, err
	}
	return i, i.waitSynced(ctx)
}

// findOrMake returns the informer of a kind, and reports whether the cache has started.
func (c *objectCache) findOrMake(id kindID) (_ *informer, isStarted bool, err error) {
	c.mu.Lock()
	i, isStarted := c.informers[id], c.isStarted
	c.mu.Unlock()
	if i != nil {
		return i, isStarted, nil
	}
	k, err := newKind(id, c.scheme, c.mapper) // may ask the server
	if err != nil {
		return nil, false, err
	}
	selections, err := c.selector.selectionsOf(id.gvk, k.scope)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded {
		return nil, false, errStopped
	}
	if i = c.informers[id]; i == nil {
		i = newInformer(k, selections, c.bridge.cache, c.log, &c.workers)
		c.informers[id] = i
	}
	if c.isStarted {
		err = i.start()
	}
	return i, c.isStarted, err
}

// GetInformer returns the informer of the kind of an object.
func (c *objectCache) GetInformer(
	ctx context.Context, object client.Object, options ...ctrlcache.InformerGetOption,
) (ctrlcache.Informer, error) {
	id, err := idOf(object, c.scheme)
	if err != nil {
		return nil, err
	}
	return c.getInformer(ctx, id, options)
}

// GetInformerForKind returns the informer of typed objects of a kind.
func (c *objectCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, options ...ctrlcache.InformerGetOption,
) (ctrlcache.Informer, error) {
	if !c.scheme.Recognizes(gvk) {
		return nil, runtime.NewNotRegisteredErrForKind(c.scheme.Name(), gvk)
	}
	return c.getInformer(ctx, kindID{gvk, typed}, options)
}

func (c *objectCache) getInformer(
	ctx context.Context, id kindID, options []ctrlcache.InformerGetOption,
) (ctrlcache.Informer, error) {
	var o ctrlcache.InformerGetOptions
	for _, option := range options {
		option(&o)
	}
	i, err := c.informerOf(ctx, id, o)
	if err != nil {
		return nil, err
	}
	return i, nil
}

// RemoveInformer stops the informer of the kind of an object, if there is one.
func (c *objectCache) RemoveInformer(_ context.Context, object client.Object) error {
	id, err := idOf(object, c.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	i := c.informers[id]
	delete(c.informers, id)
	c.mu.Unlock()
	if i != nil {
		i.stop()
	}
	return nil
}

// IndexField keeps an index of the objects of a kind, by which lists can select.
func (c *objectCache) IndexField(
	ctx context.Context, object client.Object, field string, values client.IndexerFunc,
) error {
	id, err := idOf(object, c.scheme)
	if err != nil {
		return err
	}
	i, err := c.informerOf(ctx, id, ctrlcache.InformerGetOptions{BlockUntilSynced: new(false)})
	if err != nil {
		return err
	}
	return i.addIndex(&index{kind: i.kind, field: field, values: values})
}

// readerOf returns the informer for a read of objects or lists.
func (c *objectCache) readerOf(ctx context.Context, object runtime.Object) (*informer, error) {
	id, err := idOf(object, c.scheme)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	i, isStarted := c.informers[id], c.isStarted
	c.mu.Unlock()
	switch {
	case !isStarted:
		return nil, new(ctrlcache.ErrCacheNotStarted)
	case i == nil && c.selector.options.ReaderFailOnMissingInformer:
		return nil, &ctrlcache.ErrResourceNotCached{GVK: id.gvk}
	}
	return c.informerOf(ctx, id, ctrlcache.InformerGetOptions{})
}

// Get reads one object.
func (c *objectCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	i, err := c.readerOf(ctx, into)
	if err != nil {
		return err
	}
	k := i.kind
	if k.scope == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	numbers, err := i.selectionsIn(key.Namespace)
	if err != nil {
		return fmt.Errorf("get %s %s: %w", k.gvk, key, err)
	}
	n := numbers[0]
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}, key.Name)
	r := &wire.Request{
		Verb: wire.VerbGet, Resource: k.resource, Namespace: key.Namespace, Name: key.Name, Representation: k.representation(),
	}
	response, err := c.bridge.reader.Do(ctx, r)
	switch {
	case kube.IsNotFound(err):
		return notFound
	case err != nil:
		return err
	}
	object, err := i.decodeText(response.Body, n)
	switch {
	case err != nil:
		return err
	case !i.selects(n, object):
		return notFound
	}
	return set(into, object)
}

// List reads the objects that options select. Field selectors name indexes.
func (c *objectCache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	i, err := c.readerOf(ctx, into)
	if err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.Continue != "" {
		return fmt.Errorf("list %s: the cache has no pages: leave Continue out", i.kind.gvk)
	}
	matches, err := i.matchesOf(o)
	if err != nil {
		return err
	}
	numbers, err := i.selectionsIn(o.Namespace)
	if err != nil {
		return fmt.Errorf("list %s: %w", i.kind.gvk, err)
	}
	items := []runtime.Object{}
	isComplete := func() bool { return o.Limit > 0 && int64(len(items)) >= o.Limit }
	for _, n := range numbers {
		s := i.selections[n]
		stream := s.stream(i.kind.resource, i.kind.representation())
		if stream.Namespace == "" {
			stream.Namespace = o.Namespace
		}
		if o.LabelSelector != nil {
			stream.LabelSelector = both(s.labels, o.LabelSelector).String()
		}
		for page, err := range stream.Pages(ctx, c.bridge.reader, matches...) {
			if err != nil {
				return err
			}
			for _, text := range page.Items {
				if isComplete() {
					break
				}
				object, err := i.decodeText(text, n)
				if err != nil {
					return err
				}
				items = append(items, object)
			}
			if isComplete() {
				break
			}
		}
	}
	return meta.SetList(into, items)
}

// both returns a selector of what two selectors select.
func both(a, b labels.Selector) labels.Selector {
	requirements, isSelectable := a.Requirements()
	if !isSelectable {
		return a
	}
	return b.Add(requirements...)
}

// set changes into to an object of its type.
func set(into, object client.Object) error {
	to, from := reflect.ValueOf(into), reflect.ValueOf(object)
	if !from.Type().AssignableTo(to.Type()) {
		return fmt.Errorf("the cache has objects of the type %T, and a %T was asked for", object, into)
	}
	to.Elem().Set(from.Elem())
	return nil
}
