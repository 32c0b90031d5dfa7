package controller

import (
	"iter"
	"slices"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// Trigger asks for the reconcile of one object, or of all.
type Trigger struct {
	// Key names the object. A trigger for an object that does not exist, or that the controller
	// does not watch, is ignored. The namespace is ignored if the reconciled kind is
	// cluster-scoped.
	Key kube.Key
	// All asks for all objects, and Key is ignored. Changes of objects go first, as with a resync.
	All bool
	// Cause is for the log and for [Result].
	Cause string
	// NotBefore is the earliest time of the reconcile, such as [Now] plus a delay. The zero time
	// means at once.
	NotBefore time.Time
}

// emit adds a trigger of a [Source].
func (e *engine) emit(t Trigger) {
	trigger := queue.Trigger{
		Key: t.Key, Priority: queue.High, NotBefore: t.NotBefore, Cause: queue.Cause{Change: t.Cause},
	}
	if e.kind.Resource.ClusterScoped {
		trigger.Key.Namespace = ""
	}
	if !t.All {
		e.trigger(trigger)
		return
	}
	trigger.Priority = queue.Low
	for k := range e.keys() {
		trigger.Key = k
		e.queue.Add(trigger)
	}
}

// keys returns the keys of all objects of the reconciled kind.
func (e *engine) keys() iter.Seq[kube.Key] {
	return func(yield func(kube.Key) bool) {
		for _, sub := range e.own {
			for o := range sub.open.Store().All(cache.Filter{}) {
				if !yield(sub.keyOf(o.Record)) {
					return
				}
			}
		}
	}
}

// trigger passes a trigger to the queue if the controller can have the object.
func (e *engine) trigger(t queue.Trigger) {
	switch {
	case !e.covers(t.Key):
	case e.debouncer != nil && t.Priority == queue.High && t.NotBefore.IsZero():
		e.debouncer.hold(t)
	default:
		e.queue.Add(t)
	}
}

// covers reports whether the streams of the reconciled kind can show an object of that key. A
// program that is narrowed to some namespaces must not ask for objects in others, whatever a
// map function returns.
func (e *engine) covers(k kube.Key) bool {
	return k.Name != "" && slices.ContainsFunc(e.own, func(sub *subscription) bool { return sub.covers(k) })
}

// stored returns an object of the reconciled kind as its own stream shows it.
func (e *engine) stored(k kube.Key) (cache.Object, bool) {
	for _, sub := range e.own {
		if sub.covers(k) {
			return sub.open.Store().Get(k)
		}
	}
	return cache.Object{}, false
}
