package controller

import (
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// enqueuer passes triggers to the queue of the controller.
type enqueuer struct {
	shownObjects shownObjects
	// add adds a trigger to the queue, and drop is [queue.Queue.DropGone].
	add  func(queue.Trigger)
	drop func(kube.Key)
	// isWorking is true once the controller reconciles. Before that, the controller waits for its streams and for its
	// election. A standby may wait for months.
	isWorking atomic.Bool
	// debouncer holds triggers back before the queue. It is nil without [Debounce].
	debouncer *queue.Debouncer
	// isClusterScoped is true if the reconciled kind is cluster-scoped.
	isClusterScoped bool
}

// newEnqueuer returns an enqueuer of triggers for the shown objects. r is their resource. quiet is the quiet time of
// [Debounce], or 0.
func newEnqueuer(
	shown shownObjects, r wire.Resource, quiet time.Duration, add func(queue.Trigger), drop func(kube.Key),
) *enqueuer {
	e := &enqueuer{shownObjects: shown, add: add, drop: drop, isClusterScoped: r.ClusterScoped}
	if quiet > 0 {
		e.debouncer = queue.NewDebouncer(quiet, add)
	}
	return e
}

// enqueue passes a trigger to the queue if the controller can have the object.
func (e *enqueuer) enqueue(t queue.Trigger) {
	switch {
	case !e.shownObjects.covers(t.Key):
	case e.debouncer != nil && t.Priority == queue.High && t.NotBefore.IsZero() && t.Echo != queue.OwnStatus &&
		e.isWorking.Load():
		e.debouncer.Add(t)
	default:
		e.add(t)
	}
}

// dropGone removes the key of an object that is gone from the queue, and returns whether the key still needs a trigger.
// While no worker takes keys, dropGone returns false. A key stays in the queue if one of its triggers does not need the
// object. That trigger is enough. Without dropGone the queue of a standby would keep the key of each object that ever
// existed. While workers take keys, dropGone removes nothing and returns true.
func (e *enqueuer) dropGone(k kube.Key) (needsTrigger bool) {
	if e.isWorking.Load() {
		return true
	}
	e.drop(k)
	return false
}

// enqueueAll adds the trigger that newTrigger returns for each object.
func (e *enqueuer) enqueueAll(newTrigger func(kube.Key) queue.Trigger) {
	for k := range e.shownObjects.keys() {
		e.add(newTrigger(k))
	}
}

// emit adds a trigger of a source.
func (e *enqueuer) emit(t Trigger) {
	cause := queue.Cause{Change: t.Cause}
	if t.All {
		e.enqueueAll(func(k kube.Key) queue.Trigger {
			return queue.Trigger{Key: k, Priority: queue.Low, NotBefore: t.NotBefore, Cause: cause}
		})
		return
	}
	if e.isClusterScoped {
		t.Key.Namespace = ""
	}
	e.enqueue(queue.Trigger{Key: t.Key, Priority: queue.High, NotBefore: t.NotBefore, Cause: cause})
}

// stop drops the triggers that are held back.
func (e *enqueuer) stop() {
	if e.debouncer != nil {
		e.debouncer.Stop()
	}
}
