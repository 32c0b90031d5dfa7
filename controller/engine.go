package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/noop"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// lastWait is how long calls may take to return once their context has ended.
const lastWait = 3 * time.Second

// engine is a controller that runs.
type engine[T any] struct {
	*Controller[T]
	runtime *Runtime
	log     *slog.Logger
	// client reads from the cache, as far as this controller may see it. It is there once the
	// streams are subscribed to.
	client   *kube.Client
	applies  *noop.Checker
	adoption *adoption
	queue    *queue.Queue
	remaps   *remaps
	// subs are those of the reconciled kind, which are own, and then those of the other
	// sources. They are opened in this order, so that the stores of the reconciled kind are
	// there when another source asks for them.
	subs, own []*subscription
	echoes    *echoes
	failures  failures
	calls     runningCalls
}

// subscription is one stream of one source.
type subscription struct {
	source source
	stream kube.Stream
	synced chan struct{}
	open   *cache.Subscription

	mu       sync.Mutex
	throttle logThrottle
}

// shows tells whether the stream has an object among those that it selects, so that it will
// tell its next change, whatever that is.
func (s *subscription) shows(r cache.Record) bool {
	o, ok := s.open.Store().Get(r.Key())
	return ok && o.UID == r.UID
}

// Start runs the controller until ctx ends: then it takes no new work, lets calls that are
// under way come to their end within the grace, and returns nil. When that is over their
// context ends; an error names how many ignore that. They can make no more requests
// through the client that they were given.
func (c *Controller[T]) Start(ctx context.Context, rt *Runtime) error {
	if _, err := c.Needs(); err != nil {
		return err
	}
	e := &engine[T]{
		Controller: c, runtime: rt, log: rt.Log,
		queue:    queue.New(),
		remaps:   newRemaps(),
		echoes:   newEchoes(),
		failures: failures{byKey: make(map[queue.Key]*failure)},
		calls:    runningCalls{calls: make(map[queue.Key]runningCall)},
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	return e.run(ctx)
}

func (e *engine[T]) run(ctx context.Context) error {
	defer func() {
		e.queue.Shutdown()
		e.remaps.queue.Shutdown()
		for _, sub := range e.subs {
			if sub.open != nil {
				sub.open.Close()
			}
		}
	}()
	if err := e.subscribe(ctx); err != nil {
		return err
	}
	e.observe()
	for _, sub := range e.subs {
		select {
		case <-sub.synced:
		case <-ctx.Done():
			return nil
		}
	}
	// What is under way outlives ctx by the grace.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var running sync.WaitGroup
	for range e.concurrency {
		running.Go(func() { e.worker(ctx, work, &running) })
	}
	running.Go(func() { e.logLongCalls(ctx) })
	if len(e.self.selectors) > 0 && (e.finalizer != "" || len(e.retired) > 0) {
		running.Go(func() { e.runSource(ctx, SourceFunc(e.emitDeselected)) })
	}
	running.Go(func() { e.remap(ctx) })
	for _, s := range e.custom {
		running.Go(func() { e.runSource(ctx, s) })
	}
	<-ctx.Done()
	e.queue.Shutdown()
	e.remaps.queue.Shutdown()
	return e.end(&running, cancel)
}

// end waits for what is running.
func (e *engine[T]) end(running *sync.WaitGroup, cancel context.CancelCauseFunc) error {
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(e.grace):
	}
	cancel(fmt.Errorf("the program ends, and %s of grace are over", e.grace))
	select {
	case <-ended:
		return nil
	case <-time.After(lastWait):
		return fmt.Errorf("the controller %s: %d calls, or a source, did not return although their context had ended %s before",
			e.name, e.queue.Stats().Running, lastWait)
	}
}

// subscribe opens the streams of all sources, the reconciled kind first.
func (e *engine[T]) subscribe(ctx context.Context) error {
	self := e.self
	self.streams = func(c *kube.Client) ([]kube.Stream, error) { return e.api(c, "").Streams(self.selectors...) }
	for _, s := range append([]source{self}, e.sources...) {
		s.referring = func(namespace, value string) []kube.Ref { return e.referring(s.references, namespace, value) }
		streams, err := s.streams(e.runtime.Client)
		if err != nil {
			return fmt.Errorf("the controller %s: %w", e.name, err)
		}
		for _, stream := range streams {
			if stream.Resource.IsSecret() && !s.keepSecrets {
				stream.Representation = kube.MetadataOnly
			}
			e.subs = append(e.subs, &subscription{source: s, stream: stream, synced: make(chan struct{})})
		}
		if e.own == nil {
			e.own = e.subs[:len(e.subs):len(e.subs)]
		}
	}
	// Calls that are under way when ctx ends go on reading what is kept.
	ctx = context.WithoutCancel(ctx)
	var opened []*cache.Subscription
	// From the first Open on, changes come in.
	for id, sub := range e.subs {
		open, err := e.runtime.Cache.Open(ctx, sub.stream, func(change cache.Change) { e.take(id, sub, change) })
		if err != nil {
			return fmt.Errorf("the controller %s: follow %s: %w", e.name, sub.stream, err)
		}
		sub.open = open
		if err := sub.index(); err != nil {
			return fmt.Errorf("the controller %s: %w", e.name, err)
		}
		opened = append(opened, open)
	}
	view := e.runtime.Cache.View(opened...)
	e.client = e.runtime.Client.With(view.Handler).WithFieldManager(e.manager)
	e.applies = noop.NewChecker(view)
	e.adoption = newAdoption(view, e.formerManagers)
	return nil
}

// index has the store keep what the source wants to be indexed.
func (s *subscription) index() error {
	store := s.open.Store()
	for _, key := range s.source.labelIndexes {
		store.IndexLabel(key)
	}
	for _, x := range s.source.indexes {
		if err := store.Index(x); err != nil {
			return err
		}
	}
	return nil
}

// referring are the objects of the reconciled kind that have a value in x.
func (e *engine[T]) referring(x *kube.Index, namespace, value string) (refs []kube.Ref) {
	for _, sub := range e.own {
		for o := range sub.open.Store().All(cache.Filter{Namespace: namespace, Index: x, Value: value}) {
			refs = append(refs, kube.Ref{Namespace: o.Namespace, Name: o.Name})
		}
	}
	return refs
}
