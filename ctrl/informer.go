package ctrl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// errStopped is the error of an informer that is removed, or whose cache has ended.
var errStopped = errors.New("the informer has stopped: get another one from the cache")

// errFixed is the error of a setting that an informer does not take.
var errFixed = errors.New("the informers of yare take no transform and no handler of watch errors: set the transform in cache.Options")

// informer hands the objects of a kind to event handlers. Its streams are open from start to stop. It is a
// toolscache.SharedIndexInformer, because libraries ask the informers of controller-runtime for their stores.
type informer struct {
	kind       kind
	selections []selectionOfKind
	cache      *cache.Cache
	log        logr.Logger
	// synced is done when all streams are listed.
	synced *completion

	mu        sync.Mutex
	isStarted bool
	isStopped bool
	// streams are open: one for each selection. There are none before the start.
	streams  []*cache.Subscription
	handlers map[*registration]struct{}
	indexes  map[string]*index
	// stopped is closed by stop.
	stopped chan struct{}
	// workers are the goroutines of all handlers of the cache.
	workers *sync.WaitGroup
}

func newInformer(k kind, selections []selectionOfKind, c *cache.Cache, log logr.Logger, workers *sync.WaitGroup) *informer {
	return &informer{
		kind: k, selections: selections, cache: c, log: log.WithValues("kind", k.gvk.String()),
		stopped: make(chan struct{}), workers: workers,
		synced:   newCompletion("cache of "+k.gvk.String(), len(selections)),
		handlers: make(map[*registration]struct{}), indexes: make(map[string]*index),
	}
}

// start opens the streams. A second call does nothing.
func (i *informer) start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isStarted || i.isStopped {
		return nil
	}
	i.isStarted = true
	for _, s := range i.selections {
		stream, err := i.open(s, func(change cache.Change) {
			if change.Type == cache.Synced {
				i.synced.completeOne()
			}
		})
		if err != nil {
			return err
		}
		i.streams = append(i.streams, stream)
		for _, x := range i.indexes {
			if err := stream.Store().Index(x); err != nil {
				return err
			}
		}
	}
	for r := range i.handlers {
		if err := i.startHandlerLocked(r); err != nil {
			return err
		}
	}
	return nil
}

// open subscribes to the stream of a selection.
func (i *informer) open(s selectionOfKind, subscriber cache.Subscriber) (*cache.Subscription, error) {
	// The informer closes its subscriptions itself.
	return i.cache.Open(context.Background(), s.stream(i.kind.resource, i.kind.representation()), subscriber)
}

// startHandlerLocked begins to hand all objects to a handler, and then each change. The caller holds i.mu.
func (i *informer) startHandlerLocked(r *registration) error {
	for n, s := range i.selections {
		stream, err := i.open(s, func(change cache.Change) { r.add(event{Change: change, selection: n}) })
		if err != nil {
			return err
		}
		r.streams = append(r.streams, stream)
	}
	i.workers.Go(r.run)
	return nil
}

// stop closes all streams, and ends all handlers. It does not wait for a running call of a handler.
func (i *informer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isStopped {
		return
	}
	i.isStopped = true
	close(i.stopped)
	for r := range i.handlers {
		r.end()
	}
	clear(i.handlers)
	for _, s := range i.streams {
		s.Close()
	}
	i.streams = nil
}

// waitSynced waits until all streams are listed.
func (i *informer) waitSynced(ctx context.Context) error {
	select {
	case <-i.synced.Done():
		return nil
	case <-i.stopped:
		return errStopped
	case <-ctx.Done():
		return fmt.Errorf("wait for the cache of %s: %w", i.kind.gvk, context.Cause(ctx))
	}
}

// decode returns the object of a selection.
func (i *informer) decode(o cache.Object, n int) (client.Object, error) {
	text, err := o.Bytes()
	if err != nil {
		return nil, err
	}
	return i.decodeText(text, n)
}

// decodeText returns the object of a selection that its JSON stands for.
func (i *informer) decodeText(text []byte, n int) (client.Object, error) {
	object, err := i.kind.decode(text)
	transform := i.selections[n].transform
	if err != nil || transform == nil {
		return object, err
	}
	changed, err := transform(object)
	if err != nil {
		return nil, fmt.Errorf("the transform of %s: %w", i.kind.gvk, err)
	}
	transformed, ok := changed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the transform of %s returned a %T, which is no object", i.kind.gvk, changed)
	}
	return transformed, nil
}

// decodeOrLog returns the object of a selection. If the object does not fit its type, decodeOrLog logs that and returns nil.
func (i *informer) decodeOrLog(o cache.Object, n int) client.Object {
	object, err := i.decode(o, n)
	if err != nil {
		i.log.Error(err, "an object is left out", "namespace", o.Namespace, "name", o.Name)
		return nil
	}
	return object
}

// all hands the objects of all stores to yield, with the numbers of their selections.
func (i *informer) all(yield func(n int, o cache.Object) bool) {
	for n := range i.selections {
		store := i.storeOf(n)
		if store == nil {
			return
		}
		for o := range store.All(cache.Filter{}) {
			if !yield(n, o) {
				return
			}
		}
	}
}

// storeOf returns the store of a selection, or nil if the informer does not run.
func (i *informer) storeOf(n int) *cache.Store {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n >= len(i.streams) {
		return nil
	}
	return i.streams[n].Store()
}

// selectionsIn returns the numbers of the selections that a read in a namespace needs: one, or all if the namespace is
// empty.
func (i *informer) selectionsIn(namespace string) (numbers []int, err error) {
	if namespace == "" {
		for n := range i.selections {
			numbers = append(numbers, n)
		}
		return numbers, nil
	}
	for _, wanted := range []string{namespace, ""} {
		n := slices.IndexFunc(i.selections, func(s selectionOfKind) bool { return s.namespace == wanted })
		if n >= 0 {
			return []int{n}, nil
		}
	}
	return nil, fmt.Errorf("the cache does not hold the namespace %q: add it to the options of the cache", namespace)
}

// selects reports whether a selection has an object that was read. Only the server knows which fields of a spec can be
// selected, so the store decides about them.
func (i *informer) selects(n int, object client.Object) bool {
	s := i.selections[n]
	own := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, r := range s.fields.Requirements() {
		if !own.Has(r.Field) {
			store := i.storeOf(n)
			if store == nil {
				return false
			}
			_, isStored := store.Get(kube.Key{Namespace: object.GetNamespace(), Name: object.GetName()})
			return isStored
		}
	}
	return s.labels.Matches(labels.Set(object.GetLabels())) && s.fields.Matches(own)
}

// addIndex keeps an index of all objects.
func (i *informer) addIndex(x *index) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.isStopped:
		return errStopped
	case i.kind.form == metadataForm:
		return fmt.Errorf("index the field %q of %s: an index of metadata is not possible: index whole objects", x.field, i.kind.gvk)
	case i.indexes[x.field] != nil:
		return fmt.Errorf("index the field %q of %s: there is an index of this name", x.field, i.kind.gvk)
	}
	i.indexes[x.field] = x
	for _, s := range i.streams {
		if err := s.Store().Index(x); err != nil {
			return err
		}
	}
	return nil
}

// match returns the condition that an index stands for.
func (i *informer) match(field, value string) (wire.Match, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	x := i.indexes[field]
	if x == nil {
		return wire.Match{}, fmt.Errorf("list %s by the field %q: there is no such index: add one by IndexField", i.kind.gvk, field)
	}
	return wire.Match{Index: x, Value: value}, nil
}

// matchesOf returns the conditions of the field selector in o.
func (i *informer) matchesOf(o client.ListOptions) (matches []wire.Match, err error) {
	if o.FieldSelector == nil {
		return nil, nil
	}
	for _, r := range o.FieldSelector.Requirements() {
		if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil, fmt.Errorf("list %s by %s: the cache selects by equality only", i.kind.gvk, o.FieldSelector)
		}
		match, err := i.match(r.Field, r.Value)
		if err != nil {
			return nil, err
		}
		matches = append(matches, match)
	}
	return matches, nil
}

// AddEventHandler adds a handler. It gets all objects, and then each change.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler that gets all objects again after each period.
func (i *informer) AddEventHandlerWithResyncPeriod(
	h toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler. A period of zero means that it does not get objects again.
func (i *informer) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, o toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isStopped {
		return nil, errStopped
	}
	period := i.selections[0].resync()
	if o.ResyncPeriod != nil {
		period = *o.ResyncPeriod
	}
	r := &registration{
		informer: i, handler: h, period: period, arrived: make(chan struct{}, 1),
		synced: newCompletion("handler of "+i.kind.gvk.String(), len(i.selections)),
	}
	i.handlers[r] = struct{}{}
	if i.isStarted {
		if err := i.startHandlerLocked(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// RemoveEventHandler ends a handler. A running call of it may go on.
func (i *informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.informer != i {
		return errors.New("the registration is of another informer")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.handlers, r)
	r.end()
	return nil
}

// AddIndexers returns an error: nobody could read by such an index.
func (i *informer) AddIndexers(toolscache.Indexers) error { return errNoIndexers }

// GetStore returns the objects that the streams have shown.
func (i *informer) GetStore() toolscache.Store { return indexer{i} }

// GetIndexer returns the objects that the streams have shown. It has no index.
func (i *informer) GetIndexer() toolscache.Indexer { return indexer{i} }

// GetController returns the informer itself.
func (i *informer) GetController() toolscache.Controller { return i }

// Run waits until the informer has stopped or stop is closed: the cache runs the informer.
func (i *informer) Run(stop <-chan struct{}) {
	select {
	case <-stop:
	case <-i.stopped:
	}
}

// RunWithContext waits until the informer has stopped or ctx ends: the cache runs the informer.
func (i *informer) RunWithContext(ctx context.Context) { i.Run(ctx.Done()) }

// LastSyncResourceVersion returns the version that all streams have reached, or "" before they are listed.
func (i *informer) LastSyncResourceVersion() (lowest string) {
	for n := range i.selections {
		store := i.storeOf(n)
		if store == nil || store.Version() == "" {
			return ""
		}
		if order, err := resourceversion.CompareResourceVersion(store.Version(), lowest); n == 0 || err == nil && order < 0 {
			lowest = store.Version()
		}
	}
	return lowest
}

// SetWatchErrorHandler returns an error, because the streams repeat watches by their own rules.
func (i *informer) SetWatchErrorHandler(toolscache.WatchErrorHandler) error { return errFixed }

// SetWatchErrorHandlerWithContext returns an error, because the streams repeat watches by their own rules.
func (i *informer) SetWatchErrorHandlerWithContext(toolscache.WatchErrorHandlerWithContext) error {
	return errFixed
}

// SetTransform returns an error, because the options of the cache have the transform.
func (i *informer) SetTransform(toolscache.TransformFunc) error { return errFixed }

// HasSynced reports whether all streams are listed.
func (i *informer) HasSynced() bool { return toolscache.IsDone(i.synced) }

// HasSyncedChecker returns a checker that is done when all streams are listed.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return i.synced }

// IsStopped reports whether the informer was removed, or its cache has ended.
func (i *informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.isStopped
}

// completion is done after a number of steps. It is a toolscache.DoneChecker.
type completion struct {
	name string
	done chan struct{}

	mu   sync.Mutex
	left int
}

func newCompletion(name string, steps int) *completion {
	return &completion{name: name, done: make(chan struct{}), left: steps}
}

// completeOne does one step.
func (c *completion) completeOne() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// Name returns what is waited for.
func (c *completion) Name() string { return c.name }

// Done returns a channel that is closed after the last step.
func (c *completion) Done() <-chan struct{} { return c.done }
