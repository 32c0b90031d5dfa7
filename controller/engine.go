package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/adoption"
	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/mapping"
	"github.com/yare-go/yare/controller/internal/noop"
	"github.com/yare-go/yare/controller/internal/owned"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/internal/follow"
)

// lastWait is how long calls may take to return after their context has ended.
const lastWait = 3 * time.Second

// longestGrace is the longest grace that the requirements of a program name. A longer one stands for "for ever".
const longestGrace = 100 * 365 * 24 * time.Hour

// errWaiting is the error of [watch.Until] in the functions of a controller's author.
var errWaiting = errors.New("a controller must not wait, because other objects wait with it: return controller.RequeueAfter, or name the kind as a source, whose changes trigger the reconcile")

// engine is a running controller. It makes the parts of the controller, and starts and ends them. Each
// part knows only the parts before it:
//
//	subscriptions   the streams of the watched kinds
//	queue           which object is reconciled next
//	echoes          which changes the reconciles have made
//	mapQueue        changes that wait for the mapper
//	unfinished      which objects have failed, or wait for finalizers of others
//	cancels         the running reconciles that the deletion of their object ends
//	enqueuer        triggers → queue
//	dispatcher      changes → keys → triggers
//	mapper          the keys of changes whose relation is slow
//	pipeline        the clients of reconciles
//	finalizers      the finalizers of the objects
//	longReconciles  logs reconciles that run for a long time
//	repair          reconciles all objects after a store was in doubt
//	deselected      objects that have a finalizer and no longer match the selectors
//	objectReader    reads the object of a reconcile
//	finalizerWaits  logs that a deletion waits for finalizers of others
//	reporter        reports the result of a reconcile
//	reconciler      read, call, report
type engine struct {
	configuration *configuration
	runtime       *Runtime
	// log has the name of the controller as an attribute. programLog has not.
	log, programLog *slog.Logger
	// clock is the clock of the queue. It is nil for the real clock.
	clock *clock.Clock
	// retainer may be nil.
	retainer access.Retainer

	subscriptions  *subscriptions
	queue          *queue.Queue
	enqueuer       *enqueuer
	mapQueue       *mapQueue
	echoes         *echo.Tracker
	unfinished     *unfinishedObjects
	cancels        *cancelRegistry
	longReconciles *longReconciles
	doubtSettled   signal
	dispatcher     *dispatcher
}

// newEngine returns an engine with the parts that need no open stream.
func newEngine(ctx context.Context, cfg *configuration, rt *Runtime) (*engine, error) {
	reconciled := cfg.reconciled
	reconciled.relation = relation.Self{}
	subscriptions, err := newSubscriptions(&reconciled, cfg.watched, rt)
	if err != nil {
		return nil, err
	}
	e := &engine{
		configuration: cfg, runtime: rt, programLog: rt.Log, clock: clock.From(ctx), retainer: access.RetainerFrom(ctx),
		subscriptions: subscriptions,
		queue:         queue.New(clock.From(ctx)),
		mapQueue:      mapping.NewQueue[*subscription](DefaultBackoff),
		echoes:        echo.NewTracker(),
		unfinished:    newUnfinishedObjects(),
		cancels:       newCancelRegistry(),
		doubtSettled:  newSignal(),
	}
	if e.programLog == nil {
		e.programLog = slog.Default()
	}
	e.log = e.programLog.With("controller", cfg.name)
	e.longReconciles = newLongReconciles(e.log, cfg.timeout, cfg.concurrency)
	e.longReconciles.events.recorder = rt.Events
	e.enqueuer = newEnqueuer(subscriptions, cfg.kind.Resource, cfg.quiet, e.queue.Add, e.queue.DropGone)
	var uids *relation.UIDIndex
	if len(ownerLabels(cfg.watched)) > 0 {
		uids = relation.NewUIDIndex()
	}
	e.dispatcher = &dispatcher{
		log: e.log, shownObjects: subscriptions,
		reconciledKind: relation.ReconciledKind{
			Resource: cfg.kind.Resource, Referrers: subscriptions.referrers, KeyOfUID: uids.Key,
		},
		uids: uids, pausedBy: cfg.pausedBy, echoes: e.echoes, unfinished: e.unfinished, cancels: e.cancels,
		recordDoubtSettled: e.doubtSettled.send, mapQueue: e.mapQueue, enqueue: e.enqueuer.enqueue,
		dropGone: e.enqueuer.dropGone, makeNextReadLive: rt.Cache.RecordPossiblyGone,
		details: detailObserverOf(rt.Observer),
	}
	return e, nil
}

// run runs the controller until ctx ends.
func (e *engine) run(ctx context.Context) error {
	release := e.clock.Hold("controller " + e.configuration.name + " (not synced)")
	defer release()
	defer e.enqueuer.stop()
	defer e.subscriptions.close()
	if err := e.subscriptions.open(ctx, e.runtime.Cache, e.dispatcher.handleChange); err != nil {
		return fmt.Errorf("the controller %s: %w", e.configuration.name, err)
	}
	e.registerStats()
	late, err := e.newLateParts()
	if err != nil {
		return fmt.Errorf("the controller %s: %w", e.configuration.name, err)
	}
	children, err := newOwned(e.configuration.watched, e.runtime)
	if err != nil {
		return fmt.Errorf("the controller %s: %w", e.configuration.name, err)
	}
	ctx = owned.With(ctx, children)
	ctx = context.WithValue(follow.WithoutWaiting(ctx, errWaiting), namespaceKey{}, e.runtime.Namespace)
	// A call that is running when ctx ends may go on for the grace.
	reconcilesCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var running sync.WaitGroup
	running.Go(func() { late.mapper.run(ctx, &running) })
	if e.waitSynced(ctx) && e.waitElected(ctx) {
		defer e.clock.Add("controller "+e.configuration.name, e.queue)()
		e.startParts(ctx, reconcilesCtx, late, &running)
		release()
		<-ctx.Done()
	}
	e.queue.Shutdown()
	return e.end(&running, cancel)
}

// registerStats passes the function that returns the stats of the queue to the observer of the program, if there is
// one.
func (e *engine) registerStats() {
	if e.runtime.Observer == nil {
		return
	}
	e.runtime.Observer.Subscribed(e.configuration.name, func() QueueStats {
		s := e.queue.Stats()
		if !e.runtime.isElected() { // the objects wait for the leadership
			s.Ready, s.Waiting, s.OldestReady = 0, s.Waiting+s.Ready, 0
		}
		return QueueStats{
			Ready: s.Ready, Waiting: s.Waiting, Running: s.Running, Oldest: s.OldestReady,
			Retries: s.Retries, Triggers: s.Adds, Failing: e.unfinished.countRetried(),
			LongestRunning: e.longReconciles.longest(time.Now()),
		}
	})
}

// lateParts are the parts that newLateParts makes once the streams are open, because they read from the cache.
type lateParts struct {
	mapper     *mapper
	reconciler *reconciler
	repair     *doubtRepair
	// deselected is nil if the reconciled kind has no selectors, or the controller no finalizers.
	deselected *deselectedObjects
}

// newLateParts returns the parts that read from the cache. The streams must be open.
func (e *engine) newLateParts() (*lateParts, error) {
	cfg, rt := e.configuration, e.runtime
	narrowed, err := cfg.reconciled.client(rt)
	if err != nil {
		return nil, err
	}
	view := e.subscriptions.view(rt.Cache)
	reconciledKind := e.dispatcher.reconciledKind
	reconciledKind.Client = newMapClient(rt.Client, view, e.subscriptions.coversRead)
	client := rt.Client.WithFieldManager(cfg.manager)
	p := &pipeline{
		client: client, view: view, noopChecker: noop.NewChecker(view, contested.NewReporter(e.log, rt.Observer).Report),
		adoption: adoption.NewGuard(view, e.ownerExistence, cfg.formerManagers, ownerLabels(cfg.watched)),
		echoes:   e.echoes, skipsOwnStatus: cfg.reconciled.skipsOwnStatus, subscriptions: e.subscriptions.all,
		reconciledKind: reconciledKind,
		streams:        e.subscriptions, enqueue: e.enqueuer.enqueue, makeNextReadLive: rt.Cache.RecordPossiblyGone,
		uncachedLists: newUncachedLists(e.log, e.subscriptions), details: detailObserverOf(rt.Observer), controller: cfg.name,
	}
	forget := []func(){p.noopChecker.ForgetAll, e.echoes.ForgetVersions, p.adoption.Forget}
	if cfg.newMover != nil {
		p.mover = cfg.newMover(view, e.log, cfg.formerManagers, cfg.formerPrefixes, ownerLabels(cfg.watched))
		forget = append(forget, p.mover.Forget)
	}
	f := &finalizers{
		name: cfg.finalizer, former: cfg.former, retired: cfg.retired, access: cfg.access, liveClient: rt.Client,
		retainer: e.retainer,
	}
	late := &lateParts{
		mapper: &mapper{
			log: e.log, queue: e.mapQueue, reconciledKind: reconciledKind,
			waitSynced: e.subscriptions.waitSynced, trigger: e.dispatcher.triggerRelated, emit: e.enqueuer.emit,
		},
		repair: &doubtRepair{
			doubtSettled: e.doubtSettled, forget: forget,
			log: e.log, doubtWait: e.subscriptions.doubtWait, doubtedStreams: e.subscriptions.doubtedStreams,
			releaseLow:   e.queue.ReleaseLow,
			isUnfinished: e.unfinished.isUnfinished, enqueueAll: e.enqueuer.enqueueAll, repaired: newSignal(),
		},
	}
	reader := &objectReader{
		shownObjects: e.subscriptions, access: cfg.access, cachedClient: client.With(view.Handler), liveClient: rt.Client,
		appendObject: view.AppendObject, kind: cfg.reconciled.kind,
	}
	if len(cfg.reconciled.selectors) > 0 {
		reader.deselected = &deselectedObjects{
			shownObjects: e.subscriptions, access: cfg.access, finalizers: f, reconciled: &cfg.reconciled,
			liveClient: rt.Client, narrowedClient: narrowed, cluster: e.subscriptions.ofReconciledKind[0].stream.Cluster,
			repaired: late.repair.repaired,
		}
		if !f.isEmpty() {
			late.deselected = reader.deselected
		}
	}
	late.reconciler = &reconciler{
		name: cfg.name, resource: cfg.kind.Resource, log: e.log, programLog: e.programLog, timeout: cfg.timeout,
		pausedBy: cfg.pausedBy, reconcilesDeleting: cfg.reconcilesDeleting, functions: cfg.functions, onGone: cfg.onGone,
		tracer: rt.Tracer,
		clock:  e.clock, queue: e.queue, shownObjects: e.subscriptions,
		unfinished: e.unfinished, longReconciles: e.longReconciles,
		requeueWaits: newRequeueWaits(e.log),
		waits:        &finalizerWaits{log: e.log, finalizers: f, clock: e.clock, unfinished: e.unfinished},
		finalizers:   f, read: reader.read, clientFor: p.clientFor,
		isAnyStreamBehindTerm: e.subscriptions.isAnyStreamBehindTerm, echoes: e.echoes,
		report: (&reporter{
			log: e.log, observer: rt.Observer, onResult: cfg.onResult, events: failureEvents{rt.Events},
		}).report,
	}
	if cfg.cancelsDeleted {
		late.reconciler.cancels = e.cancels
	}
	return late, nil
}

// ownerExistence returns what is known of the existence of an object of the reconciled kind with a uid.
func (e *engine) ownerExistence(cluster string, uid types.UID) adoption.Existence {
	if _, ok := e.dispatcher.uids.Key(cluster, uid); ok {
		return adoption.Exists
	}
	if e.subscriptions.isWholeKindShown(cluster) {
		return adoption.Gone
	}
	return adoption.Unknown
}

// waitSynced waits until the controller knows all existing objects, and the related objects of each. It
// returns false if ctx ends first.
func (e *engine) waitSynced(ctx context.Context) bool {
	if !e.subscriptions.waitSynced(ctx) {
		return false
	}
	select {
	case <-e.mapQueue.Barrier():
		return true
	case <-ctx.Done():
		return false
	}
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

// startParts starts the reconciler, the other late parts but the mapper, and the emitters. The contexts of reconciles
// are derived from reconcilesCtx.
func (e *engine) startParts(ctx, reconcilesCtx context.Context, late *lateParts, running *sync.WaitGroup) {
	e.queue.HoldLow(func() bool { return e.subscriptions.doubtWait() > 0 })
	doubtWait := e.subscriptions.doubtWait()
	e.enqueuer.isWorking.Store(true)
	for range e.configuration.concurrency {
		running.Go(func() { late.reconciler.run(ctx, reconcilesCtx, running) })
	}
	running.Go(func() { e.longReconciles.run(ctx) })
	running.Go(func() { late.repair.run(ctx, doubtWait) })
	if late.deselected != nil {
		running.Go(func() { runEmitter(ctx, e.log, late.deselected.run, e.enqueuer.emit) })
	}
	for _, emitter := range e.configuration.emitters {
		run := emitter.run
		if every, ok := emitter.(every); ok {
			run = every.onClock(e.clock)
		}
		running.Go(func() { runEmitter(ctx, e.log, run, e.enqueuer.emit) })
	}
}

// end waits for the goroutines of the controller. When the grace is over, it ends their context by
// cancel. It returns an error if they have not returned lastWait later.
func (e *engine) end(running *sync.WaitGroup, cancel context.CancelCauseFunc) error {
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(e.configuration.grace):
	}
	cancel(fmt.Errorf("the program ends, and %s of grace are over", e.configuration.grace))
	select {
	case <-ended:
		return nil
	case <-time.After(lastWait):
		return fmt.Errorf(
			"the controller %s: %d calls, a map function or a source did not return although their context had ended %s before",
			e.configuration.name, e.queue.Stats().Running, lastWait)
	}
}
