package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/noop"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// lastWait is how long calls may take to return after their context has ended.
const lastWait = 3 * time.Second

// errWaiting is the error of [watch.WaitFor] in the functions of a controller's author.
var errWaiting = errors.New("a controller must not wait, because other objects wait with it: return controller.RequeueAfter, or name the kind as a source, whose changes trigger the reconcile")

// engine is a running controller.
type engine struct {
	*definition
	runtime *Runtime
	log     *slog.Logger
	// client reads from the cache, as far as this controller may see it. It is set by subscribe.
	client   *kube.Client
	applies  *noop.Checker
	adoption *adoption
	queue    *queue.Queue
	// debouncer holds triggers back before the queue. It is nil without [Debounce].
	debouncer *debouncer
	// clock is the clock of the queue. It is nil for the real clock.
	clock *clock.Clock
	// mapper holds the changes of slow relations.
	mapper *mapper
	// reconciled is the reconciled kind as relations need it that are not slow.
	reconciled reconciledKind
	// reader is the client of map functions. It is set by subscribe.
	reader *kube.Client
	// subs holds the subscriptions of all watched kinds, and own those of the reconciled kind, which
	// are the first in subs. They are opened in this order, because relations read the stores of
	// own.
	subs, own []*subscription
	// uids finds objects of the reconciled kind by uid. It is nil if no relation needs it.
	uids     *uidIndex
	echoes   *echoes
	failures failures
	calls    runningCalls
	// restoration receives the restorations of backups that streams have found.
	restoration restoration
}

// start runs a controller until ctx ends: see [Controller.Start].
func (d *definition) start(ctx context.Context, rt *Runtime) error {
	if _, err := d.needs(); err != nil {
		return err
	}
	e := &engine{
		definition: d, runtime: rt, log: rt.Log,
		queue:    queue.New(clock.From(ctx)),
		clock:    clock.From(ctx),
		mapper:   newMapper(),
		echoes:   newEchoes(),
		uids:     newUIDIndex(d.watched),
		failures: failures{byKey: make(map[kube.Key]*failure)},
		calls:    runningCalls{calls: make(map[kube.Key]runningCall)},

		restoration: newRestoration(),
	}
	if d.quiet > 0 {
		e.debouncer = newDebouncer(d.quiet, e.queue.Add)
		defer e.debouncer.stop()
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	return e.run(ctx)
}

func (e *engine) run(ctx context.Context) error {
	release := e.clock.Hold("controller " + e.name + " (not synced)")
	defer release()
	defer func() {
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
	ctx = watch.WithoutWaiting(ctx, errWaiting)
	// What is under way outlives ctx by the grace.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var running sync.WaitGroup
	running.Go(func() { e.mapChanges(ctx, &running) })
	if e.waitSynced(ctx) && e.waitElected(ctx) {
		defer e.clock.Add("controller "+e.name, e.queue)()
		e.startWork(ctx, work, &running)
		release()
		<-ctx.Done()
	}
	e.queue.Shutdown()
	return e.end(&running, cancel)
}

// waitSynced waits until the controller knows all objects that exist, and which objects of the
// reconciled kind they concern. It returns false if ctx ends first.
func (e *engine) waitSynced(ctx context.Context) bool {
	if !e.waitStreams(ctx) {
		return false
	}
	select {
	case <-e.mapper.barrier():
		return true
	case <-ctx.Done():
		return false
	}
}

// waitStreams waits until all streams are synced. It returns false if ctx ends first.
func (e *engine) waitStreams(ctx context.Context) bool {
	for _, sub := range e.subs {
		select {
		case <-sub.synced:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// waitElected waits until the program leads. It returns false if ctx ends first. It restarts the
// waiting times of the queue, because what became ready meanwhile has waited for the election.
func (e *engine) waitElected(ctx context.Context) bool {
	if e.runtime.isElected() {
		return true
	}
	if e.runtime.WaitElected(ctx) != nil {
		return false
	}
	e.queue.RestartWaits()
	return true
}

// startWork starts the workers and the sources.
func (e *engine) startWork(ctx, work context.Context, running *sync.WaitGroup) {
	for range e.concurrency {
		running.Go(func() { e.worker(ctx, work, running) })
	}
	running.Go(func() { e.logLongCalls(ctx) })
	running.Go(func() { e.repairRestorations(ctx) })
	if len(e.self.selectors) > 0 && (e.finalizer != "" || len(e.retired) > 0) {
		running.Go(func() { e.runSource(ctx, SourceFunc(e.emitDeselected)) })
	}
	for _, s := range e.sources {
		if every, ok := s.(every); ok {
			s = every.on(e.clock)
		}
		running.Go(func() { e.runSource(ctx, s) })
	}
}

// end waits for the goroutines of the controller. When the grace is over, it ends their context. It
// returns an error if they have not returned lastWait later.
func (e *engine) end(running *sync.WaitGroup, cancel context.CancelCauseFunc) error {
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
		return fmt.Errorf("the controller %s: %d calls, a map function or a source did not return although their context had ended %s before",
			e.name, e.queue.Stats().Running, lastWait)
	}
}

// subscribe opens the streams of all watched kinds, the reconciled kind first.
func (e *engine) subscribe(ctx context.Context) error {
	e.reconciled = reconciledKind{resource: e.kind.Resource, referrers: e.referrers, keyOfUID: e.uids.key}
	self := e.self
	self.relation = selfRelation{}
	for i, w := range append([]*watchedKind{&self}, e.watched...) {
		c, err := w.client(e.runtime)
		var streams []kube.Stream
		if err == nil {
			streams, err = w.streams(c)
		}
		if err != nil {
			return fmt.Errorf("the controller %s: %w", e.name, err)
		}
		for _, stream := range streams {
			if stream.Resource.IsSecret() && !w.keepSecrets {
				stream.Representation = kube.MetadataOnly
			}
			stream.IfServed = w.ifServed
			e.subs = append(e.subs, &subscription{watched: w, isOwn: i == 0, stream: stream, synced: make(chan struct{})})
		}
		if i == 0 {
			e.own = slices.Clip(e.subs)
		}
	}
	// Calls that are under way when ctx ends go on reading from the stores.
	ctx = context.WithoutCancel(ctx)
	var opened []*cache.Subscription
	// Changes come in from the first Open on.
	for _, sub := range e.subs {
		open, err := e.runtime.Cache.Open(ctx, sub.stream, func(change cache.Change) { e.handleChange(sub, change) })
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
	e.reader = e.newReader(view)
	e.client = e.runtime.Client.With(view.Handler).WithFieldManager(e.manager)
	e.applies = noop.NewChecker(view)
	e.adoption = newAdoption(view, e.formerManagers, ownerLabels(e.watched))
	return nil
}

// mapping returns the reconciled kind as slow relations need it.
func (e *engine) mapping() reconciledKind {
	to := e.reconciled
	to.client = e.reader
	return to
}

// referrers returns the objects of the reconciled kind that have a value in x.
func (e *engine) referrers(x *kube.Index, cluster, namespace, value string) (keys []relatedKey) {
	for _, sub := range e.own {
		if sub.stream.Cluster != cluster {
			continue
		}
		for o := range sub.open.Store().All(cache.Filter{Namespace: namespace, Index: x, Value: value}) {
			keys = append(keys, relatedKey{Key: sub.keyOf(o.Record)})
		}
	}
	return keys
}
