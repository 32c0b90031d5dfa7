package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// reconciliation is the reconcile, or the cleanup, of one object.
type reconciliation struct {
	item    queue.Item
	started time.Time
	// call is the context of the reconcile.
	call call
	// step names the running step, for the error of a panic.
	step string
	// object is nil if the object could not be read.
	object kube.Object
	trace  *requestTrace
	result Result
	// endSpan ends the span of the reconcile. It is nil if nobody traces.
	endSpan func(error)
	// isOver is true if the controller has nothing (more) to do for the object.
	isOver bool
	// isFinishing is true once the author's functions for results may be running.
	isFinishing bool
}

// errExited is the error of a reconcile that ended its goroutine.
var errExited = errors.New("the function called runtime.Goexit: return an error instead")

// worker reconciles one object after the other, until ctx ends. The calls themselves run under
// work, which ends later.
func (e *engine) worker(ctx, work context.Context, running *sync.WaitGroup) {
	var r *reconciliation
	defer func() {
		if r == nil {
			return
		}
		// One of the author's functions has called runtime.Goexit, which ends this goroutine.
		// Another worker takes its place.
		outcome := queue.Outcome{Failed: true, RetryAfter: DefaultBackoff(r.item.Attempt + 1)}
		defer func() {
			e.queue.Done(r.item.Key, outcome)
			running.Go(func() { e.worker(ctx, work, running) })
		}()
		if !r.isFinishing {
			outcome = e.finish(r, fmt.Errorf("%s: %w", r.step, errExited))
		}
	}()
	for {
		item, ok := e.queue.Get(ctx)
		if !ok {
			return
		}
		r = &reconciliation{item: item, started: time.Now()}
		r.call.start(work, e.log, e.name, item.Key)
		err := guard(&r.step, func() error { return e.reconcileItem(&r.call, r) })
		outcome := e.finish(r, err)
		r = nil
		e.queue.Done(item.Key, outcome)
	}
}

// reconcileItem runs the cleanup or the reconcile of one object.
func (e *engine) reconcileItem(ctx context.Context, r *reconciliation) error {
	key := r.item.Key
	ref := kube.Ref{Cluster: key.Cluster, Resource: e.kind.Resource, Namespace: key.Namespace, Name: key.Name}
	r.result = Result{Controller: e.name, Object: ref, Causes: r.item.Causes.String(), Waited: r.item.Waited}

	r.step = "the decoding of the object"
	obj, found, err := e.read(ctx, key)
	switch {
	case err != nil:
		if _, isMisfit := errors.AsType[*kube.DecodeError](err); isMisfit {
			return Terminal(err) // only a change of the object can help
		}
		return err
	case found == absent:
		for _, onGone := range e.onGone {
			e.guardAuthor("a function for objects that are gone", func() { onGone(key) })
		}
		r.isOver = true
		return nil
	}
	ref.UID = obj.GetUID()
	r.object, r.result.Object = obj, ref
	if found == selected && obj.GetDeletionTimestamp() == nil && e.isPaused(obj) {
		r.isOver = true
		return nil
	}
	ctx = e.startSpan(ctx, r, found == deselected || obj.GetDeletionTimestamp() != nil)
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	if e.cancelsDeleted && found == selected && obj.GetDeletionTimestamp() == nil {
		var end func()
		ctx, end = e.cancelDeleted(ctx, key, ref.UID)
		defer end()
	}
	r.trace = e.newTrace(ctx)
	client := e.clientFor(ctx, key, ref, r.trace)

	r.step = "the update of the finalizers"
	obj, exists, err := e.removeRetired(ctx, client, obj)
	if err != nil || !exists {
		r.isOver = true
		return err
	}
	isDeleting := obj.GetDeletionTimestamp() != nil
	r.object, r.result.Cleanup = obj, isDeleting || found == deselected
	switch hasIt := hasFinalizer(obj, e.finalizer); {
	case r.result.Cleanup && !hasIt:
		r.isOver = true
		return nil
	case r.result.Cleanup:
		cleanup, err := callAuthor(ctx, e, r, "the cleanup function", e.cleanup, client)
		r.result.Next = cleanup.after
		if err != nil || !cleanup.isDone {
			return err
		}
		r.step = "the update of the finalizers"
		return e.removeFinalizer(ctx, client, obj)
	case e.finalizer != "" && !hasIt && e.isFinalizerNeeded(r):
		r.step = "the update of the finalizers"
		var added bool
		if obj, added, err = e.addFinalizer(ctx, client, obj); err != nil || !added {
			// The object is being deleted or gone. The change that shows this is on its way.
			return err
		}
		r.object = obj
	}
	action, err := callAuthor(ctx, e, r, "the reconcile function", e.reconcile, client)
	if errors.Is(err, errDeleted) && context.Cause(ctx) == errDeleted { //nolint:errorlint // the cause itself
		return nil // the change that begins the deletion has triggered the cleanup
	}
	r.result.Next = action.after
	return err
}

// isFinalizerNeeded reports whether the condition of the finalizer holds for the object of r.
func (e *engine) isFinalizerNeeded(r *reconciliation) bool {
	r.step = "the condition of the finalizer"
	return e.needsFinalizer == nil || e.needsFinalizer(r.object)
}

// withTimeout returns ctx with the timeout of the controller, if the controller has one.
func (e *engine) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, e.timeout, fmt.Errorf("the timeout of the controller %s, %s, has passed", e.name, e.timeout))
}

// callAuthor calls the reconcile or the cleanup function, whose result is an R. If ctx has ended, an
// error of the function comes with the cause, such as the timeout.
func callAuthor[R any](ctx context.Context, e *engine, r *reconciliation, step string, f func(context.Context, kube.Object, *kube.Client) (R, error), client *kube.Client) (R, error) {
	r.step = step
	reportAfter := longCall
	if e.timeout > 0 {
		reportAfter = e.timeout + timeoutSlack
	}
	e.calls.begin(r.item.Key, reportAfter)
	defer e.calls.end(r.item.Key)
	result, err := f(ctx, r.object, client)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return result, err
}

// presence is what the controller has to do with an object.
type presence int

const (
	// absent means that the object does not exist, or never concerned the controller.
	absent presence = iota
	// selected means that the object exists, and the controller reconciles it.
	selected
	// deselected means that the object exists and has the finalizer, but no longer matches the
	// selectors of [For].
	deselected
)

// read returns the object of key. The object is at least as new as what triggered the
// reconcile. It is nil only if it is absent, or with an error.
func (e *engine) read(ctx context.Context, key kube.Key) (kube.Object, presence, error) {
	stored, isStored := e.stored(key)
	isSelecting := len(e.self.selectors) > 0
	if isSelecting && !isStored {
		return e.readDeselected(ctx, key)
	}
	c := e.client.InCluster(key.Cluster)
	obj, err := e.objects.get(ctx, c, key)
	if isSelecting {
		// Another stream may have answered, and be behind the controller's own.
		switch {
		case kube.IsNotFound(err):
			obj, err = e.objects.get(ctx, e.runtime.Client.InCluster(key.Cluster), key)
		case err == nil && ident.IsNewer(stored.ResourceVersion, obj.GetResourceVersion()):
			var object []byte
			if object, err = stored.Bytes(); err == nil {
				obj, err = e.objects.decode(c, object)
			}
		}
	}
	switch {
	case kube.IsNotFound(err):
		return nil, absent, nil
	case err != nil:
		return nil, absent, err
	}
	return obj, selected, nil
}

// newTrace returns the trace of one reconcile, whose context is ctx.
func (e *engine) newTrace(ctx context.Context) *requestTrace {
	return &requestTrace{ended: func() error { return context.Cause(ctx) }}
}

// clientFor returns the client of one reconcile, whose context is ctx. A request passes, from the outermost handler
// to the innermost: the trace, the check of owner references, the no-op check, adoption, the
// record of echoes, and the cache.
func (e *engine) clientFor(ctx context.Context, key kube.Key, self kube.Ref, trace *requestTrace) *kube.Client {
	isTrigger := func(r kube.Resource, live *cache.KnownState) bool { return e.triggersSelf(ctx, key, self, r, live) }
	return e.client.InCluster(key.Cluster).With(func(cached kube.Handler) kube.Handler {
		echoing := e.echoes.handler(cached, key, e.shownVersion, e.trigger)
		adopting := e.adoption.handler(echoing, self)
		skipping := e.applies.Handler(adopting, isTrigger)
		trace.next = rejectForbiddenOwners(skipping, self)
		return trace
	})
}

// triggersSelf reports whether a change to the object live of resource r would trigger the
// reconcile of key again. Predicates do not count: their author has decided that the changes
// that they reject do not matter.
func (e *engine) triggersSelf(ctx context.Context, key kube.Key, self kube.Ref, r kube.Resource, live *cache.KnownState) bool {
	for _, sub := range e.subs {
		if sub.watched.kind.Resource != r || sub.stream.Cluster != self.Cluster || len(sub.watched.selectors) > 0 && !sub.contains(live.Record) {
			continue
		}
		// A map function receives an object in the form of its own stream.
		object := live.Bytes
		switch {
		case sub.stream.Representation == kube.MetadataOnly:
			object = live.Metadata
		case live.Representation == kube.MetadataOnly:
			object = func() ([]byte, error) { return nil, errors.New("only the metadata is cached") }
		}
		keys, err := sub.relatedKeys(ctx, live.Record, object, e.mapping())
		if err != nil {
			continue
		}
		for _, t := range keys {
			if t.Key == key && (t.uid == "" || t.uid == string(self.UID)) {
				return true
			}
		}
	}
	return false
}

// finish reports the result of a reconcile whose error is err, and returns when the next one
// is due. An error overrides the action that came with it.
func (e *engine) finish(r *reconciliation, err error) queue.Outcome {
	r.isFinishing = true
	if r.endSpan != nil {
		e.guardAuthor("the tracer", func() { r.endSpan(err) })
	}
	key, result := r.item.Key, &r.result
	if err == nil && r.isOver {
		return e.finishOver(r)
	}
	if r.trace != nil {
		result.Reads, result.Writes = r.trace.recorded()
	}
	result.Err, result.Duration = err, time.Since(r.started)
	if err == nil {
		e.failures.forget(key, "")
		e.echoes.forgetUncertain(key)
		e.report(r, nil)
		return queue.Outcome{RequeueAfter: result.Next}
	}
	f := e.failures.failureFor(key, result.Object.UID)
	f.errorCount++
	result.Attempt = f.errorCount
	outcome := queue.Outcome{Failed: true}
	switch {
	case IsTerminal(err):
		f.backoffCount, f.conflictCount = 0, 0
		result.Next, outcome.Failed = 0, false
	case isConflict(err):
		f.recordConflict(time.Now())
		result.Next = exponential(firstConflict, longestConflict, f.conflictCount)
	default:
		f.backoffCount++
		f.conflictCount = 0
		result.Next = e.retryDelay(r.object, err, f.backoffCount)
	}
	outcome.RetryAfter = result.Next
	e.report(r, f)
	return outcome
}

// finishOver ends the work on an object that the controller has nothing to do for. If the
// object is being deleted and waits for finalizers of others, it is checked once more after a
// while.
func (e *engine) finishOver(r *reconciliation) queue.Outcome {
	if r.object != nil {
		if isWaiting, checkAfter := e.logWaiting(r); isWaiting {
			return queue.Outcome{RequeueAfter: checkAfter}
		}
	}
	e.failures.forget(r.item.Key, r.result.Object.UID)
	return queue.Outcome{Forget: true}
}

// retryDelay returns the back-off after a failure: the wait of the policy, or the delay that the
// server asked for if that is longer. Up to a tenth is added at random, so that objects that fail
// together are not retried together.
func (e *engine) retryDelay(obj kube.Object, err error, attempt int) (d time.Duration) {
	d = DefaultBackoff(attempt)
	if obj != nil {
		e.guardAuthor("the backoff policy", func() { d = max(e.backoff(obj, err, attempt), time.Millisecond) })
	}
	return withJitter(max(d, serverDelay(err)))
}
