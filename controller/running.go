package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

const (
	// longCall is how long a reconcile without a timeout may run before that is logged.
	longCall = 5 * time.Minute
	// timeoutSlack is how long after its timeout a reconcile may return before a log line reports
	// that it ignores its context.
	timeoutSlack = 10 * time.Second
	// runningCheck is the interval of the checks.
	runningCheck = time.Minute
)

// runningCalls holds the calls of reconcile and cleanup functions that have not returned.
type runningCalls struct {
	mu    sync.Mutex
	calls map[kube.Key]runningCall
	// deletable holds the reconciles that the deletion of their object ends.
	deletable map[kube.Key]deletableCall
}

// deletableCall is a reconcile that the deletion of its object ends.
type deletableCall struct {
	uid    types.UID
	cancel context.CancelCauseFunc
}

// errDeleted is the cause of a context that the deletion of the object has ended.
var errDeleted = errors.New("the object is being deleted")

// cancelDeleted returns the context of a reconcile, which ends when the deletion of its object begins.
// end must be called after the reconcile.
func (e *engine) cancelDeleted(ctx context.Context, k kube.Key, uid types.UID) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	e.calls.addDeletable(k, deletableCall{uid, cancel})
	// The deletion may have begun since the object was read.
	if o, ok := e.stored(k); ok && o.UID == uid && o.Deleting {
		cancel(errDeleted)
	}
	return ctx, func() {
		e.calls.removeDeletable(k)
		cancel(nil)
	}
}

func (r *runningCalls) addDeletable(k kube.Key, c deletableCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deletable == nil {
		r.deletable = make(map[kube.Key]deletableCall)
	}
	r.deletable[k] = c
}

func (r *runningCalls) removeDeletable(k kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deletable, k)
}

// recordDeletion ends the context of the reconcile of an object whose deletion has begun.
func (r *runningCalls) recordDeletion(k kube.Key, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.deletable[k]; ok && c.uid == uid {
		c.cancel(errDeleted)
	}
}

type runningCall struct {
	started time.Time
	// reportAfter is how long the call may run before it is logged (again).
	reportAfter time.Duration
}

// begin records that a call for k has started.
func (r *runningCalls) begin(k kube.Key, reportAfter time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[k] = runningCall{started: time.Now(), reportAfter: reportAfter}
}

// end records that the call for k has returned.
func (r *runningCalls) end(k kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, k)
}

// takeLong returns the calls that have been running for longer than their reportAfter, with
// their durations, and doubles their reportAfter.
func (r *runningCalls) takeLong(now time.Time) map[kube.Key]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var long map[kube.Key]time.Duration
	for k, c := range r.calls {
		d := now.Sub(c.started)
		if d < c.reportAfter {
			continue
		}
		if long == nil {
			long = make(map[kube.Key]time.Duration)
		}
		long[k] = d
		c.reportAfter = 2 * d
		r.calls[k] = c
	}
	return long
}

// logLongCalls logs calls that do not return, until ctx ends. Such a call keeps its object and
// its worker: a second call for the object would break the promise that an object has one
// worker, and calls beyond the concurrency might never return either.
func (e *engine) logLongCalls(ctx context.Context) {
	ticker := time.NewTicker(runningCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for k, d := range e.calls.takeLong(now) {
				text, hint := "a reconcile does not return", "give the controller a Timeout, and pass the context to what may block"
				if e.timeout > 0 {
					text, hint = "a reconcile ignores that its context has ended", "pass the context to what may block"
				}
				e.log.Warn(text, "controller", e.name, "namespace", k.Namespace, "name", k.Name,
					"running", d.Round(time.Second), "concurrency", e.concurrency, "hint", hint)
			}
		}
	}
}
