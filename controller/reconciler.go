package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// reconciler reconciles the objects whose keys the queue hands out. One reconcile has these steps:
//
//  1. Read the object.
//  2. Add the finalizer, and remove former and retired finalizers.
//  3. Call the reconcile function. For an object that is being deleted, call the cleanup function instead, and
//     remove the finalizers when the cleanup is done. With [ReconcileDeleting], an object that is being deleted and
//     needs no cleanup is reconciled.
//  4. Report the result.
//  5. Return to the queue when the next reconcile is due.
type reconciler struct {
	// name is the name of the controller, and resource is the reconciled resource.
	name     string
	resource wire.Resource
	// log has the name of the controller as an attribute, and programLog has not.
	log, programLog *slog.Logger
	timeout         time.Duration
	pausedBy        pauseAnnotation
	// reconcilesDeleting is true with [ReconcileDeleting].
	reconcilesDeleting bool
	functions          functions
	onGone             []func(kube.Key)
	// tracer may be nil.
	tracer wire.Tracer

	// clock is the clock of queue. It is nil for the real clock.
	clock          *clock.Clock
	queue          workQueue
	shownObjects   shownObjects
	unfinished     *unfinishedObjects
	requeueWaits   *requeueWaits
	longReconciles *longReconciles
	waits          *finalizerWaits
	// cancels is nil without [CancelDeleted].
	cancels    *cancelRegistry
	finalizers *finalizers
	// read returns the object of key: see [objectReader].
	read func(ctx context.Context, key kube.Key) (kube.Object, selection, error)
	// clientFor returns the client of one reconcile: see [pipeline].
	clientFor func(ctx context.Context, key kube.Key, object wire.Ref, recorder *requestRecorder) *kube.Client
	// isAnyStreamBehindTerm reports whether a stream of the controller may lack writes of a former leader.
	isAnyStreamBehindTerm func() bool
	echoes                echoTracker
	// report reports a result: see [reporter].
	report func(c *reconcileContext, obj kube.Object, r Result, failing *unfinishedObject)
}

// workQueue hands out reconciles: see [queue.Queue].
type workQueue interface {
	Get(ctx context.Context) (queue.Work, bool)
	Done(key queue.Key, next queue.Next)
}

// echoTracker is what is known about the writes of reconciles: see [echo.Tracker].
type echoTracker interface {
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
	// context is the context of the reconcile.
	context reconcileContext
	// step names the running step, for the error of a panic.
	step string
	// object is nil if the object could not be read.
	object   kube.Object
	recorder *requestRecorder
	result   Result
	// endSpan ends the span of the reconcile. It is nil if nobody traces.
	endSpan func(error)
	// isDeselected is true for an object that no longer matches the selectors of [Reconciled] and waits for its cleanup.
	isDeselected bool
	// needsNoCall is true if the object needs no call of a function of the author: the object is gone, is paused, or is
	// being deleted and needs no cleanup.
	needsNoCall bool
	// isReporting is true once the author's functions for results may be running.
	isReporting bool
}

// run reconciles one object after the other, until ctx ends. The context of the calls is derived from reconcilesCtx,
// which ends later than ctx.
func (r *reconciler) run(ctx, reconcilesCtx context.Context, running *sync.WaitGroup) {
	var rec *reconciliation
	defer func() {
		if rec == nil {
			return
		}
		// One of the author's functions has called runtime.Goexit, which ends this goroutine.
		// Another worker takes its place.
		next := queue.Next{IsRetried: true, RetryAfter: DefaultBackoff(rec.work.FailureCount + 1)}
		defer func() {
			r.queue.Done(rec.work.Key, next)
			running.Go(func() { r.run(ctx, reconcilesCtx, running) })
		}()
		if !rec.isReporting {
			next = r.end(rec, fmt.Errorf("%s: %w", rec.step, errExited))
		}
	}()
	for {
		work, ok := r.queue.Get(ctx)
		if !ok {
			return
		}
		rec = &reconciliation{work: work, started: time.Now()}
		rec.context.start(reconcilesCtx, r.programLog, r.name, work.Key)
		err := recoverPanic(&rec.step, func() error { return r.reconcile(&rec.context, rec) })
		next := r.end(rec, err)
		rec = nil
		r.queue.Done(work.Key, next)
	}
}

// reconcile runs the cleanup or the reconcile of one object.
func (r *reconciler) reconcile(ctx context.Context, rec *reconciliation) error {
	key := rec.work.Key
	ref := wire.Ref{Cluster: key.Cluster, Resource: r.resource, Namespace: key.Namespace, Name: key.Name}
	rec.result = Result{Controller: r.name, Object: ref, Causes: rec.work.Causes.String(), Waited: rec.work.Waited}

	rec.step = "the read of the object"
	obj, selection, err := r.read(ctx, key)
	rec.isDeselected = selection == deselected
	switch {
	case err != nil:
		if decodeErr, isUndecodable := errors.AsType[*wire.DecodeError](err); isUndecodable {
			rec.result.Object.UID = decodeErr.Ref.UID
			return Terminal(r.waits.explainUndecodable(r.shownObjects, key, err)) // only a change of the object can help
		}
		return err
	case selection == notShownYet:
		rec.needsNoCall = true
		return nil
	case selection == noObject:
		for _, onGone := range r.onGone {
			callLoggingPanic(r.log, "a function for objects that are gone", func() { onGone(key) })
		}
		rec.needsNoCall = true
		return nil
	}
	ref.UID = obj.GetUID()
	rec.object, rec.result.Object = obj, ref
	isDeleting := obj.GetDeletionTimestamp() != nil
	rec.result.Cleanup = selection == deselected ||
		isDeleting && (!r.reconcilesDeleting || r.finalizers.needsCleanup(obj))
	if !rec.result.Cleanup && r.pausedBy.isOn(obj) {
		rec.needsNoCall = true
		return nil
	}
	ctx = r.startSpan(ctx, rec, rec.result.Cleanup)
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	if r.cancels != nil && !isDeleting && !rec.result.Cleanup {
		var stop func()
		ctx, stop = r.cancelOnDeletion(ctx, key, ref.UID)
		defer stop()
	}
	rec.recorder = newRequestRecorder(ctx)
	client := r.clientFor(ctx, key, ref, rec.recorder)
	mayEdit := r.askFinalizerCondition(rec)
	if rec.result.Cleanup {
		return r.cleanUp(ctx, rec, client, mayEdit)
	}
	if mayEdit {
		rec.step = "the update of the finalizers"
		update := r.finalizers.update
		if isDeleting {
			update = r.finalizers.removeRetired
		}
		updated, exists, err := update(ctx, client, obj)
		if err != nil || !exists || !isDeleting && updated.GetDeletionTimestamp() != nil {
			// The object is being deleted or gone. The change that shows this is on its way.
			return ignoreCancelByDeletion(ctx, err)
		}
		rec.object = updated
	}
	action, err := callAuthor(ctx, r.longReconciles, rec, "the reconcile function", r.functions.reconcile, client)
	rec.result.Next = action.after
	return ignoreCancelByDeletion(ctx, err)
}

// cancelOnDeletion returns a context that ends when the deletion of an object begins. stop must be called after the
// reconcile.
func (r *reconciler) cancelOnDeletion(
	ctx context.Context, key kube.Key, uid types.UID,
) (_ context.Context, stop func()) {
	ctx, stop = r.cancels.add(ctx, key, uid)
	// The deletion may have begun since the object was read.
	if o, ok := r.shownObjects.stored(key); ok && o.UID == uid && o.Deleting {
		r.cancels.cancel(key, uid)
	}
	return ctx, stop
}

// cleanUp calls the cleanup function for the object of rec, and then removes the finalizers of the controller from the
// object. If no finalizer needs a cleanup, cleanUp removes the retired finalizers alone. It changes no finalizer unless
// mayEdit is true.
func (r *reconciler) cleanUp(ctx context.Context, rec *reconciliation, client *kube.Client, mayEdit bool) error {
	if !mayEdit || !r.finalizers.needsCleanup(rec.object) {
		rec.needsNoCall = true
		if !mayEdit {
			return nil
		}
		rec.step = "the update of the finalizers"
		updated, exists, err := r.finalizers.removeRetired(ctx, client, rec.object)
		if err != nil {
			return err
		}
		if rec.object = updated; !exists {
			rec.object = nil
		}
		return nil
	}
	cleanupClient := client
	if r.isAnyStreamBehindTerm() {
		cleanupClient = client.Live() // the former leader may have made what the cleanup has to find
	}
	cleanup, err := callAuthor(ctx, r.longReconciles, rec, "the cleanup function", r.functions.cleanup, cleanupClient)
	rec.result.Next, rec.result.isPending = cleanup.after, err == nil && !cleanup.isDone
	if err != nil || !cleanup.isDone {
		return err
	}
	rec.step = "the update of the finalizers"
	err = r.finalizers.removeOwn(ctx, client, rec.object)
	rec.isDeselected = rec.isDeselected && err != nil
	return err
}

// ignoreCancelByDeletion returns err, the error of a step of a reconcile. It returns nil if the step failed because the
// deletion of the object ended the reconcile: the change that begins the deletion has triggered the cleanup.
func ignoreCancelByDeletion(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errDeletionBegun { //nolint:errorlint // the cause itself
		return nil
	}
	return err
}

// askFinalizerCondition returns whether the controller may add and remove finalizers of the object of rec. It calls the
// condition of [Controller.FinalizerWhen] only if the answer matters. The answer does not matter once the object has
// the finalizer, and not for a cleanup of an object without own finalizers.
func (r *reconciler) askFinalizerCondition(rec *reconciliation) (mayEdit bool) {
	condition := r.functions.needsFinalizer
	matters := !rec.result.Cleanup || r.finalizers.hasAny(rec.object.GetFinalizers())
	if condition == nil || r.finalizers.has(rec.object) || !matters {
		return true
	}
	rec.step = "the condition of the finalizer"
	return condition(rec.object)
}

// withTimeout returns ctx with the timeout of the controller, if the controller has one.
func (r *reconciler) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, r.timeout,
		fmt.Errorf("the timeout of the controller %s, %s, has passed", r.name, r.timeout))
}

// callAuthor calls the reconcile or the cleanup function, whose result is an R. If ctx has ended, callAuthor adds
// the cause, such as the timeout, to an error of the function.
func callAuthor[R any](
	ctx context.Context, long *longReconciles, rec *reconciliation, step string,
	f func(context.Context, kube.Object, *kube.Client) (R, error), client *kube.Client,
) (R, error) {
	rec.step = step
	long.begin(rec.work.Key, rec.result.Object)
	defer long.end(rec.work.Key)
	result, err := f(ctx, rec.object, client)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return result, err
}

// startSpan begins the span of a reconcile or a cleanup. The method end ends the span. startSpan returns ctx if nobody
// traces.
func (r *reconciler) startSpan(ctx context.Context, rec *reconciliation, isCleanup bool) context.Context {
	if r.tracer == nil {
		return ctx
	}
	call := "reconcile "
	if isCleanup {
		call = "cleanup "
	}
	ctx, rec.endSpan = r.tracer.Start(ctx, call+r.name,
		append(rec.context.LogAttrs(), slog.String("cause", rec.result.Causes))...)
	return ctx
}

// end reports the result of a reconcile whose error is err, and returns when the next reconcile is
// due. An error overrides the action that came with it.
func (r *reconciler) end(rec *reconciliation, err error) queue.Next {
	rec.isReporting = true
	if rec.recorder != nil {
		rec.recorder.end()
	}
	if rec.endSpan != nil {
		callLoggingPanic(r.log, "the tracer", func() { rec.endSpan(err) })
	}
	key, result := rec.work.Key, &rec.result
	if err == nil && rec.needsNoCall {
		return r.endWithoutCall(rec)
	}
	if rec.recorder != nil {
		result.Reads, result.Writes = rec.recorder.recorded()
	}
	result.Err, result.Duration = err, time.Since(rec.started)
	if err != nil || result.Cleanup {
		r.echoes.ForgetOwnStatus(key)
	}
	if err == nil {
		r.unfinished.forget(key, "")
		r.echoes.ForgetUncertain(key)
		result.Next = r.requeueWaits.bounded(key, result.Next)
		if rec.isDeselected && (result.Next == 0 || result.Next > deselectedInterval) {
			result.Next = deselectedInterval
		}
		r.report(&rec.context, rec.object, *result, nil)
		return queue.Next{RequeueAfter: result.Next, SkipsOwnStatus: !result.Cleanup}
	}
	// The streams do not show the change of a deselected object, so it is retried in any case.
	next := queue.Next{IsRetried: !IsTerminal(err) || rec.isDeselected}
	failing := r.unfinished.recordError(key, result.Object.UID, next.IsRetried)
	result.Attempt = failing.errorCount
	switch {
	case !next.IsRetried:
		failing.backoff = queue.RetryWait{}
		failing.forgetConflicts()
		result.Next = 0
	case isConflict(err):
		failing.recordConflict(time.Now())
		result.Next = failing.conflictWait.Next(r.clock.Now(), 0, func(attempt int) time.Duration {
			return exponentialDelay(firstConflictDelay, longestConflictDelay, attempt)
		})
	default:
		failing.forgetConflicts()
		result.Next = failing.backoff.Next(r.clock.Now(), withJitter(serverDelay(err)), func(attempt int) time.Duration {
			return r.retryDelay(rec.object, err, attempt)
		})
	}
	next.RetryAfter = result.Next
	r.report(&rec.context, rec.object, *result, failing)
	return next
}

// endWithoutCall ends the work on an object that the controller has nothing to do for. If the object is
// being deleted and waits for finalizers of others, it is checked once more after a while.
func (r *reconciler) endWithoutCall(rec *reconciliation) queue.Next {
	if rec.object != nil {
		if isWaiting, checkAfter := r.waits.reportWait(rec.work.Key, rec.object); isWaiting {
			return queue.Next{RequeueAfter: checkAfter}
		}
	}
	r.unfinished.forget(rec.work.Key, rec.result.Object.UID)
	r.requeueWaits.forget(rec.work.Key)
	r.echoes.ForgetUncertain(rec.work.Key)
	return queue.Next{}
}

// retryDelay returns the wait of the policy after a failure. Up to a tenth is added at random. So objects that fail
// together are retried at different times.
func (r *reconciler) retryDelay(obj kube.Object, err error, attempt int) (d time.Duration) {
	d = DefaultBackoff(attempt)
	if obj != nil {
		callLoggingPanic(r.log,
			"the backoff policy", func() { d = max(r.functions.backoff(obj, err, attempt), shortestWait) })
	}
	return withJitter(d)
}
