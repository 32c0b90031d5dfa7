package controller

import (
	"context"
	"slices"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// handleChange triggers the objects that a change concerns, or passes the change to the mapper. It
// runs in the goroutine of the stream.
func (e *engine) handleChange(sub *subscription, change Change) {
	switch change.Type {
	case cache.Synced:
		close(sub.synced)
		return
	case cache.Restored:
		e.restoration.record()
		return
	}
	k := sub.keyOf(change.Record())
	if sub.isOwn && change.Type == Deleted {
		// A predicate may keep away the reconcile that would find that the object is gone.
		e.failures.forget(k, change.Before.UID)
	}
	if sub.isOwn {
		e.uids.record(k, change)
		if endsLife(change) {
			e.calls.recordDeletion(k, change.Record().UID)
		}
	}
	isAccepted := e.isAccepted(sub, change)
	c := changesOf(sub, change)
	switch {
	case sub.watched.relation.isSlow():
		e.leaveToMapper(mapKey{sub, k}, c, change, isAccepted)
	case isAccepted:
		e.triggerRelated(sub, k, c, e.keysOf(sub, change))
	}
}

// isAccepted reports whether the predicates of the watched kind accept change. They decide
// which edits matter. They cannot keep away the end of an object of the reconciled kind, nor the end
// of its pause, nor a change of which they see only a part.
func (e *engine) isAccepted(sub *subscription, change Change) bool {
	if change.Missed || sub.isOwn && (endsLife(change) || e.mayEndPause(change)) {
		return true
	}
	accepted, err := sub.watched.accepts(change)
	if err != nil {
		e.reportMapping(sub, change.Record(), err)
	}
	return accepted
}

// endsLife reports whether an object is gone, or its deletion begins with c.
func endsLife(c Change) bool {
	return c.Type == Deleted || c.After.Deleting && (c.Type == Added || !c.Before.Deleting)
}

// leaveToMapper passes a change to the mapper.
func (e *engine) leaveToMapper(k mapKey, c changes, change Change, isAccepted bool) {
	switch {
	case !isAccepted && change.Type != Added:
		e.mapper.addReplaced(k, change.BeforeObject())
	case !isAccepted:
	case change.Type == Added:
		e.mapper.add(k, c, nil)
	default:
		before := change.BeforeObject()
		e.mapper.add(k, c, &before)
	}
}

// keysOf returns the keys of the objects that a change concerns by a relation that is not slow. Both
// the state after the change and the state before it count, because the change may end what
// connected two objects, such as an owner reference.
func (e *engine) keysOf(sub *subscription, change Change) []relatedKey {
	var keys []relatedKey
	if change.Type != Deleted {
		keys = e.keysOfState(sub, change.AfterObject())
	}
	if change.Type == Added || sub.isOwn && change.Type == Modified {
		return keys
	}
	for _, t := range e.keysOfState(sub, change.BeforeObject()) {
		if !slices.Contains(keys, t) {
			keys = append(keys, t)
		}
	}
	return keys
}

func (e *engine) keysOfState(sub *subscription, o cache.Object) []relatedKey {
	keys, err := sub.relatedKeys(context.Background(), o.Record, o.Bytes, e.reconciled)
	if err != nil {
		e.reportMapping(sub, o.Record, err)
	}
	return keys
}

// triggerRelated triggers the related objects of the object k of a subscription, which has
// changed. A trigger is an echo only if each of the changes is an echo.
func (e *engine) triggerRelated(sub *subscription, k kube.Key, c changes, keys []relatedKey) {
	triggers := make([]queue.Trigger, 0, len(keys))
	for _, t := range keys {
		if t.uid == "" || e.canBe(t) {
			triggers = append(triggers, queue.Trigger{Key: t.Key, Priority: c.priority, Cause: c.cause})
		}
	}
	changed := targetOf(sub.watched.kind.Resource, k)
	for _, version := range c.earlier {
		for _, t := range e.echoes.classify(changed, version, slices.Clone(triggers)) {
			e.trigger(t)
		}
	}
	for _, t := range e.echoes.classify(changed, c.last, triggers) {
		if c.last.isDeletion() && t.Echo != queue.IsEcho {
			e.doubtOwner(t.Key, keys)
		}
		e.trigger(t)
	}
}

// doubtOwner makes the next reconcile of the object k ask the server whether the object still exists,
// if it is the owner that a deleted child named. Somebody else has deleted the child, perhaps the
// garbage collector, because the owner is gone. While the watch of the owner lags, the reconcile
// would create the child again, and the garbage collector would delete it again.
func (e *engine) doubtOwner(k kube.Key, keys []relatedKey) {
	owner, ok := e.stored(k)
	if !ok || owner.Deleting || !slices.Contains(keys, relatedKey{Key: k, uid: string(owner.UID)}) {
		return
	}
	e.runtime.Cache.Doubt(kube.Ref{Cluster: k.Cluster, Resource: e.kind.Resource, Namespace: k.Namespace, Name: k.Name, UID: owner.UID})
}

// canBe reports whether the owner that a child names can be the object of that key. It reports true
// if no object of that key is known, because the object may come soon.
func (e *engine) canBe(k relatedKey) bool {
	o, ok := e.stored(k.Key)
	return !ok || string(o.UID) == k.uid
}

// changes are one or more changes of a watched object.
type changes struct {
	priority queue.Priority
	// cause is the cause of the last change.
	cause queue.Cause
	// last is the version that the last change made, and earlier holds the versions that the other
	// changes made. If there were too many, a zero version stands for some of them.
	last    changedVersion
	earlier []changedVersion
}

// changesOf returns the changes that consist of change alone.
func changesOf(sub *subscription, change Change) changes {
	c := changes{priority: queue.High, cause: causeOf(sub, change), last: versionMade(change)}
	// Somebody waits for a deletion, also if it began before the program started.
	if change.Initial && !change.After.Deleting {
		c.priority = queue.Low
	}
	return c
}

// merge adds later changes of the same object.
func (c *changes) merge(later changes) {
	switch {
	case later.isEmpty():
		return
	case c.isEmpty():
		*c = later
		return
	}
	c.earlier = append(append(c.earlier, c.last), later.earlier...)
	if len(c.earlier) > maxFormerStates {
		c.earlier = append(c.earlier[:maxFormerStates-1], changedVersion{})
	}
	c.priority, c.cause, c.last = max(c.priority, later.priority), later.cause, later.last
}

func (c *changes) isEmpty() bool { return c.cause == queue.Cause{} }

// versionMade returns the version that a write has made if it led to the change.
func versionMade(c Change) changedVersion {
	if c.Type == Deleted {
		return changedVersion{objectVersion: objectVersion{uid: c.Before.UID}, endsLife: true}
	}
	return changedVersion{
		objectVersion: objectVersion{c.After.UID, c.After.ResourceVersion},
		endsLife:      endsLife(c),
		changesSpec:   c.Type == Modified && c.Before.Generation != c.After.Generation,
	}
}

func causeOf(sub *subscription, change Change) queue.Cause {
	r := change.Record()
	c := queue.Cause{Kind: sub.watched.kind.Resource.Kind, Namespace: r.Namespace, Name: r.Name}
	switch {
	case change.Initial:
		c.Change = "there at the start"
	case change.Type == Added:
		c.Change = "added"
	case change.Type == Deleted:
		c.Change = "deleted"
	default:
		c.Change = "modified"
	}
	return c
}
