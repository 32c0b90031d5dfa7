package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// reconciler reconciles the objects whose keys the queue hands out. The steps of one reconcile are: it
// reads the object, updates the finalizers, calls the reconcile function (or calls the cleanup function and removes the
// finalizers), reports the result, and returns to the queue when the next reconcile is due.
type reconciler struct {
	// name is the name of the controller, and resource is the reconciled resource.
	name     string
	resource wire.Resource
	// log has the name of the controller as an attribute, and programLog has not.
	log, programLog *slog.Logger
	timeout         time.Duration
	pausedBy        pauseAnnotation
	functions       functions
	onGone          []func(kube.Key)
	// tracer may be nil.
	tracer wire.Tracer

	queue    workQueue
	own      ownObjects
	failures *failures
	calls    *longCalls
	waits    *finalizerWaits
	// cancels is nil without [CancelDeleted].
	cancels    *cancelRegistry
	finalizers *finalizers
	// read returns the object of key: see [objectReader].
	read func(ctx context.Context, key kube.Key) (kube.Object, presence, error)
	// clientFor returns the client of one reconcile: see [pipeline].
	clientFor func(ctx context.Context, key kube.Key, self wire.Ref, trace *requestTrace) *kube.Client
	echoes    writeMemory
	// report reports a result: see [reporter].
	report func(c *call, obj kube.Object, r Result, f *failure)
}

// workQueue hands out reconciles: see [queue.Queue].
type workQueue interface {
	Get(ctx context.Context) (queue.Work, bool)
	Done(key queue.Key, o queue.Outcome)
}

// writeMemory is what is known about the writes of reconciles: see [echo.Tracker].
type writeMemory interface {
	ForgetUncertain(key kube.Key)
	ForgetOwnStatus(key kube.Key)
}

// functions holds the functions of the controller's author.
type functions struct {
	reconcile func(context.Context, kube.Object, *kube.Client) (Action, error)
	cleanup   func(context.Context, kube.Object, *kube.Client) (Cleanup, error)
	// needsFinalizer is the condition of [Controller.FinalizerWhen], or nil.
	needsFinalizer func(kube.Object) bool
	backoff        func(obj kube.Object, err error, attempt int) time.Duration
}

// reconciliation is the reconcile, or the cleanup, of one object.
type reconciliation struct {
	work    queue.Work
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
	// isDeselected is true for an object that no longer matches the selectors of [Reconciled] and waits for its cleanup.
	isDeselected bool
	// isOver is true if the controller has nothing (more) to do for the object.
	isOver bool
	// isReporting is true once the author's functions for results may be running.
	isReporting bool
}

// run reconciles one object after the other, until ctx ends. The calls themselves run under
// calls, which ends later.
func (c *reconciler) run(ctx, calls context.Context, running *sync.WaitGroup) {
	var r *reconciliation
	defer func() {
		if r == nil {
			return
		}
		// One of the author's functions has called runtime.Goexit, which ends this goroutine.
		// Another worker takes its place.
		outcome := queue.Outcome{Failed: true, RetryAfter: DefaultBackoff(r.work.Attempt + 1)}
		defer func() {
			c.queue.Done(r.work.Key, outcome)
			running.Go(func() { c.run(ctx, calls, running) })
		}()
		if !r.isReporting {
			outcome = c.end(r, fmt.Errorf("%s: %w", r.step, errExited))
		}
	}()
	for {
		work, ok := c.queue.Get(ctx)
		if !ok {
			return
		}
		r = &reconciliation{work: work, started: time.Now()}
		r.call.start(calls, c.programLog, c.name, work.Key)
		err := guard(&r.step, func() error { return c.reconcile(&r.call, r) })
		outcome := c.end(r, err)
		r = nil
		c.queue.Done(work.Key, outcome)
	}
}

// reconcile runs the cleanup or the reconcile of one object.
func (c *reconciler) reconcile(ctx context.Context, r *reconciliation) error {
	key := r.work.Key
	ref := wire.Ref{Cluster: key.Cluster, Resource: c.resource, Namespace: key.Namespace, Name: key.Name}
	r.result = Result{Controller: c.name, Object: ref, Causes: r.work.Causes.String(), Waited: r.work.Waited}

	r.step = "the decoding of the object"
	obj, found, err := c.read(ctx, key)
	r.isDeselected = found == deselected
	switch {
	case err != nil:
		if _, isMisfit := errors.AsType[*wire.DecodeError](err); isMisfit {
			return Terminal(err) // only a change of the object can help
		}
		return err
	case found == absent:
		for _, onGone := range c.onGone {
			guardAuthor(c.log, "a function for objects that are gone", func() { onGone(key) })
		}
		r.isOver = true
		return nil
	}
	ref.UID = obj.GetUID()
	r.object, r.result.Object = obj, ref
	if found == selected && obj.GetDeletionTimestamp() == nil && c.pausedBy.isOn(obj) {
		r.isOver = true
		return nil
	}
	ctx = c.startSpan(ctx, r, found == deselected || obj.GetDeletionTimestamp() != nil)
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	if c.cancels != nil && found == selected && obj.GetDeletionTimestamp() == nil {
		var remove func()
		ctx, remove = c.cancels.add(ctx, key, ref.UID)
		defer remove()
		// The deletion may have begun since the object was read.
		if o, ok := c.own.stored(key); ok && o.UID == ref.UID && o.Deleting {
			c.cancels.cancel(key, ref.UID)
		}
	}
	r.trace = newRequestTrace(ctx)
	client := c.clientFor(ctx, key, ref, r.trace)

	r.result.Cleanup = found == deselected || obj.GetDeletionTimestamp() != nil
	mayEdit := c.mayEditFinalizers(r)
	switch {
	case r.result.Cleanup && !(mayEdit && c.finalizers.needsCleanup(obj)):
		r.isOver = true
		if !mayEdit {
			return nil
		}
		r.step = "the update of the finalizers"
		updated, exists, err := c.finalizers.removeRetired(ctx, client, obj)
		if r.object = updated; !exists {
			r.object = nil
		}
		return withoutCancel(ctx, err)
	case r.result.Cleanup:
		cleanup, err := callAuthor(ctx, c.calls, r, "the cleanup function", c.functions.cleanup, client)
		r.result.Next = cleanup.after
		if err != nil || !cleanup.isDone {
			return err
		}
		r.step = "the update of the finalizers"
		err = c.finalizers.removeOwn(ctx, client, obj)
		r.isDeselected = r.isDeselected && err != nil
		return err
	case mayEdit:
		r.step = "the update of the finalizers"
		updated, exists, err := c.finalizers.update(ctx, client, obj)
		if err != nil || !exists || updated.GetDeletionTimestamp() != nil {
			// The object is being deleted or gone. The change that shows this is on its way.
			return withoutCancel(ctx, err)
		}
		r.object = updated
	}
	action, err := callAuthor(ctx, c.calls, r, "the reconcile function", c.functions.reconcile, client)
	r.result.Next = action.after
	return withoutCancel(ctx, err)
}

// withoutCancel returns the error of a step of a reconcile. It returns nil if the step failed because the deletion of
// the object ended the reconcile: the change that begins the deletion has triggered the cleanup.
func withoutCancel(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errDeleted { //nolint:errorlint // the cause itself
		return nil
	}
	return err
}

// mayEditFinalizers reports whether the controller may add and remove finalizers of the object of r. The condition of
// [Controller.FinalizerWhen] is asked only if it matters: it does not once the object has the finalizer.
func (c *reconciler) mayEditFinalizers(r *reconciliation) bool {
	condition, isConcerned := c.functions.needsFinalizer, !r.result.Cleanup || c.finalizers.hasAny(r.object.GetFinalizers())
	if condition == nil || c.finalizers.has(r.object) || !isConcerned {
		return true
	}
	r.step = "the condition of the finalizer"
	return condition(r.object)
}

// withTimeout returns ctx with the timeout of the controller, if the controller has one.
func (c *reconciler) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("the timeout of the controller %s, %s, has passed", c.name, c.timeout))
}

// callAuthor calls the reconcile or the cleanup function, whose result is an R. If ctx has ended, an
// error of the function comes with the cause, such as the timeout.
func callAuthor[R any](ctx context.Context, calls *longCalls, r *reconciliation, step string, f func(context.Context, kube.Object, *kube.Client) (R, error), client *kube.Client) (R, error) {
	r.step = step
	calls.begin(r.work.Key)
	defer calls.end(r.work.Key)
	result, err := f(ctx, r.object, client)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return result, err
}

// startSpan begins the span of a reconcile or a cleanup, which end ends. It returns ctx if nobody
// traces.
func (c *reconciler) startSpan(ctx context.Context, r *reconciliation, isCleanup bool) context.Context {
	if c.tracer == nil {
		return ctx
	}
	work := "reconcile "
	if isCleanup {
		work = "cleanup "
	}
	ctx, r.endSpan = c.tracer.Start(ctx, work+c.name, append(r.call.LogAttrs(), slog.String("cause", r.result.Causes))...)
	return ctx
}

// end reports the result of a reconcile whose error is err, and returns when the next reconcile is
// due. An error overrides the action that came with it.
func (c *reconciler) end(r *reconciliation, err error) queue.Outcome {
	r.isReporting = true
	if r.endSpan != nil {
		guardAuthor(c.log, "the tracer", func() { r.endSpan(err) })
	}
	key, result := r.work.Key, &r.result
	if err == nil && r.isOver {
		return c.endWithoutCall(r)
	}
	if r.trace != nil {
		result.Reads, result.Writes = r.trace.recorded()
	}
	result.Err, result.Duration = err, time.Since(r.started)
	if err != nil || result.Cleanup {
		c.echoes.ForgetOwnStatus(key)
	}
	if err == nil {
		c.failures.forget(key, "")
		c.echoes.ForgetUncertain(key)
		if r.isDeselected && (result.Next == 0 || result.Next > deselectedInterval) {
			result.Next = deselectedInterval
		}
		c.report(&r.call, r.object, *result, nil)
		return queue.Outcome{RequeueAfter: result.Next, SkipsOwnStatus: !result.Cleanup}
	}
	f := c.failures.recordError(key, result.Object.UID)
	result.Attempt = f.errorCount
	outcome := queue.Outcome{Failed: true}
	switch {
	case IsTerminal(err) && !r.isDeselected: // the streams do not show the change of a deselected object
		f.backoffCount, f.conflictCount = 0, 0
		result.Next, outcome.Failed = 0, false
	case isConflict(err):
		f.recordConflict(time.Now())
		result.Next = exponential(firstConflict, longestConflict, f.conflictCount)
	default:
		f.backoffCount++
		f.conflictCount = 0
		result.Next = c.retryDelay(r.object, err, f.backoffCount)
	}
	outcome.RetryAfter = result.Next
	c.report(&r.call, r.object, *result, f)
	return outcome
}

// endWithoutCall ends the work on an object that the controller has nothing to do for. If the object is
// being deleted and waits for finalizers of others, it is checked once more after a while.
func (c *reconciler) endWithoutCall(r *reconciliation) queue.Outcome {
	if r.object != nil {
		if isWaiting, checkAfter := c.waits.check(r.work.Key, r.object); isWaiting {
			return queue.Outcome{RequeueAfter: checkAfter}
		}
	}
	c.failures.forget(r.work.Key, r.result.Object.UID)
	c.echoes.ForgetUncertain(r.work.Key)
	return queue.Outcome{Forget: true}
}

// retryDelay returns the back-off after a failure: the longer of the wait of the policy and the delay
// that the server asked for. Up to a tenth is added at random. So objects that fail together are
// retried at different times.
func (c *reconciler) retryDelay(obj kube.Object, err error, attempt int) (d time.Duration) {
	d = DefaultBackoff(attempt)
	if obj != nil {
		guardAuthor(c.log, "the backoff policy", func() { d = max(c.functions.backoff(obj, err, attempt), time.Millisecond) })
	}
	return withJitter(max(d, serverDelay(err)))
}
