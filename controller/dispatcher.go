package controller

import (
	"context"
	"log/slog"
	"slices"

	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/mapping"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// dispatcher makes triggers of changes. The steps of a change are: the predicates accept the change,
// the relation finds the keys of the objects to reconcile, the echoes are marked, and the triggers go
// to the queue. A change whose relation is slow waits in the map queue before its keys are found: see
// [mapper].
type dispatcher struct {
	log          *slog.Logger
	shownObjects shownObjects
	// reconciledKind is the reconciled kind, for relations that are not slow. Its Client is nil.
	reconciledKind relation.ReconciledKind
	// uids finds objects of the reconciled kind by uid. It is nil if no relation needs it.
	uids       *relation.UIDIndex
	pausedBy   pauseAnnotation
	echoes     *echo.Tracker
	unfinished *unfinishedObjects
	cancels    *cancelRegistry
	// recordDoubtSettled records that a store was in doubt, and is right again.
	recordDoubtSettled func()
	mapQueue           *mapQueue
	enqueue            func(queue.Trigger)
	// dropGone removes the key of an object that is gone from the queue, and returns whether the key still needs a
	// trigger: see [enqueuer.dropGone].
	dropGone func(kube.Key) (needsTrigger bool)
	// makeNextReadLive makes the next read of an object live: see [cache.Cache.RecordPossiblyGone].
	makeNextReadLive func(wire.Ref)
	// details receives the changes. It is nil unless somebody observes them.
	details detailObserver
}

// mapQueue holds the changes whose relations are slow.
type mapQueue = mapping.Queue[*subscription]

// handleChange triggers the objects that a change concerns, or passes the change to the map queue. It
// runs in the goroutine of the stream.
func (d *dispatcher) handleChange(sub *subscription, change cache.Change) {
	switch change.Type {
	case cache.Synced:
		sub.recordSynced()
		return
	case cache.Unlisted:
		sub.settle()
		return
	case cache.DoubtSettled:
		d.recordDoubtSettled()
		return
	}
	if d.details != nil && !change.Initial {
		d.details.ObserveChange(sub.watched.kind.Resource, change)
	}
	k := sub.keyOf(change.Record())
	if sub.isOfReconciledKind {
		d.recordReconciledObject(k, change)
	}
	isAccepted := d.isAccepted(sub, change)
	b := newBatch(sub.watched.kind.Resource.Kind, change)
	switch {
	case sub.watched.relation.IsSlow():
		d.addToMapQueue(mapping.Key[*subscription]{Subscription: sub, Object: k}, b, change, isAccepted)
	case isAccepted:
		d.triggerRelated(sub, k, b, d.keysOf(sub, change))
	}
}

// recordReconciledObject records a change of the object k of the reconciled kind.
func (d *dispatcher) recordReconciledObject(k kube.Key, change cache.Change) {
	uid := change.Record().UID
	switch change.Type {
	case cache.Added:
		d.uids.Add(k, uid)
	case cache.Deleted:
		// A predicate may reject the change. Then no reconcile finds that the object is gone.
		d.unfinished.forget(k, uid)
		d.uids.Remove(k, uid)
	}
	if isDeletionStep(change) {
		d.cancels.cancel(k, uid)
	}
}

// isAccepted reports whether the predicates of the watched kind accept change. They decide which edits
// matter. Three kinds of changes are accepted in any case: a step of the deletion of an object of the
// reconciled kind, the end of its pause, and a change with missed states.
func (d *dispatcher) isAccepted(sub *subscription, change cache.Change) bool {
	if change.Missed || sub.isOfReconciledKind && (isDeletionStep(change) || d.pausedBy.mayHaveEnded(change)) {
		return true
	}
	accepted, err := sub.watched.accepts(change)
	if err != nil {
		sub.logError(d.log, change.Record(), err)
	}
	return accepted
}

// addToMapQueue passes a change to the map queue.
func (d *dispatcher) addToMapQueue(
	k mapping.Key[*subscription], b mapping.Batch, change cache.Change, isAccepted bool,
) {
	switch {
	case !isAccepted && change.Type != cache.Added:
		d.mapQueue.AddReplaced(k, change.BeforeObject())
	case !isAccepted:
	case change.Type == cache.Added:
		d.mapQueue.Add(k, b, nil)
	default:
		before := change.BeforeObject()
		d.mapQueue.Add(k, b, &before)
	}
}

// keysOf returns the keys of the objects to reconcile after a change, by a relation that is not slow.
// Both the state after the change and the state before it count, because the change may end what
// connected two objects, such as an owner reference.
func (d *dispatcher) keysOf(sub *subscription, change cache.Change) []relation.Key {
	var keys []relation.Key
	if change.Type != cache.Deleted {
		keys = d.keysOfState(sub, change.AfterObject())
	}
	if change.Type == cache.Added || sub.isOfReconciledKind && change.Type == cache.Modified {
		return keys
	}
	for _, k := range d.keysOfState(sub, change.BeforeObject()) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (d *dispatcher) keysOfState(sub *subscription, o cache.Object) []relation.Key {
	keys, err := sub.relatedKeys(context.Background(), o.Record, o.Bytes, d.reconciledKind)
	if err != nil {
		sub.logError(d.log, o.Record, err)
	}
	return keys
}

// triggerRelated triggers the objects with these keys after the changes b of the object k of a subscription.
//
// Each version is classified by itself, and leads to a trigger of its own. The queue and the debouncer merge the
// triggers of a key. One version that is no echo makes the merged trigger no echo.
func (d *dispatcher) triggerRelated(sub *subscription, k kube.Key, b mapping.Batch, keys []relation.Key) {
	triggers := make([]queue.Trigger, 0, 2) // on the stack: nearly all changes concern one object or two
	needsObject := sub.watched.relation.NeedsObjects()
	for _, related := range keys {
		if related.UID != "" && !d.mayHaveUID(related) {
			continue
		}
		if b.Last.IsDeletion() && needsObject && d.isGone(related.Key) {
			if needsTrigger := d.dropGone(related.Key); !needsTrigger {
				continue
			}
		}
		triggers = append(triggers,
			queue.Trigger{Key: related.Key, Priority: b.Priority, Cause: b.Cause, NeedsObject: needsObject})
	}
	changed := echo.NewTarget(sub.watched.kind.Resource, k)
	for _, version := range b.Earlier {
		for _, t := range d.echoes.Classify(changed, version, slices.Clone(triggers)) {
			d.enqueue(t)
		}
	}
	for _, t := range d.echoes.Classify(changed, b.Last, triggers) {
		if b.Last.IsDeletion() && t.Echo != queue.CertainEcho {
			d.recordOwnerPossiblyGone(t.Key, keys)
		}
		d.enqueue(t)
	}
}

// isGone reports whether no object of the key k exists, by the streams of the reconciled kind.
func (d *dispatcher) isGone(k kube.Key) bool {
	_, ok := d.shownObjects.stored(k)
	return !ok && d.shownObjects.isSynced(k)
}

// mayHaveUID reports whether the object of the key k may have the uid in k. It returns true if no
// object of that key is known, because the object may come soon.
func (d *dispatcher) mayHaveUID(k relation.Key) bool {
	o, ok := d.shownObjects.stored(k.Key)
	return !ok || o.UID == k.UID
}

// recordOwnerPossiblyGone makes the next reconcile of the object k ask the server whether the object still exists. It
// does so if the object is the owner that a deleted child named. Somebody else has deleted the child: perhaps the
// garbage collector, because the owner is gone. While the watch of the owner is behind, the reconcile
// would create the child again, and the garbage collector would delete the child again.
func (d *dispatcher) recordOwnerPossiblyGone(k kube.Key, keys []relation.Key) {
	owner, ok := d.shownObjects.stored(k)
	if !ok || owner.Deleting || !slices.Contains(keys, relation.Key{Key: k, UID: owner.UID}) {
		return
	}
	d.makeNextReadLive(wire.Ref{
		Cluster: k.Cluster, Resource: d.reconciledKind.Resource, Namespace: k.Namespace, Name: k.Name, UID: owner.UID,
	})
}

// newBatch returns a Batch of one change. kind is the kind of the object that changed.
func newBatch(kind string, change cache.Change) mapping.Batch {
	r := change.Record()
	b := mapping.Batch{
		Priority: queue.High, Last: shownVersion(change),
		Cause: queue.Cause{Kind: kind, Namespace: r.Namespace, Name: r.Name, Change: changeText(change)},
	}
	// Somebody waits for a deletion, also if it began before the program started.
	if change.Initial && !change.After.Deleting {
		b.Priority = queue.Low
	}
	return b
}

// shownVersion returns the version that change shows.
func shownVersion(change cache.Change) echo.ShownVersion {
	if change.Type == cache.Deleted {
		return echo.ShownVersion{
			Version: echo.Version{UID: change.Before.UID}, IsDeletionStep: true, WasBeingDeleted: change.Before.Deleting,
		}
	}
	v := echo.ShownVersion{
		Version:        echo.Version{UID: change.After.UID, ResourceVersion: change.After.ResourceVersion},
		IsDeletionStep: isDeletionStep(change),
		ChangesSpec:    change.Type == cache.Modified && change.Before.Generation != change.After.Generation,
	}
	if change.Type == cache.Modified && !change.Missed {
		v.Replaced = change.Before.ResourceVersion
	}
	return v
}

// changeText returns the type of a change for the log.
func changeText(change cache.Change) string {
	switch {
	case change.Initial:
		return "there at the start"
	case change.Type == cache.Added:
		return "added"
	case change.Type == cache.Deleted:
		return "deleted"
	default:
		return "modified"
	}
}
