// Package echo finds out which changes of objects are echoes. An echo is a change that a reconcile made
// itself. It comes back as a trigger of the same key.
//
// An example. The reconcile of the WebApp "shop" applies the Deployment "shop":
//
//	version   what happens                                     the trigger of the WebApp "shop"
//	11        the stream shows version 11 of the Deployment
//	          the reconcile applies; the write is under way
//	12        the stream shows MODIFIED at version 12          is held
//	          the apply is answered with version 12            is added as a possible echo
//	13        somebody scales the Deployment: MODIFIED at 13   is no echo
//
// The answer came at version 12. The stream had shown version 11, which is older. So the apply, or
// another write after version 11, made version 12. An answer at version 11 would mean that the apply
// changed nothing. A trigger of the WebApp "blog" by version 12 would be no echo, because the reconcile
// of another key made the change.
//
// If the answer is lost, the result of the apply is unknown. Then the first change of the
// Deployment that the apply can explain is a possible echo: version 12. Version 13 is no echo.
// If a second apply is answered at version 12, the first one explains nothing any more.
package echo

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// maxVersions is how many versions are remembered. Streams show a write within moments.
	maxVersions = 256
	// maxUncertain limits the writes of unknown result of one key.
	maxUncertain = 16
	// maxUncertainAge is how long a stream may take to show a write of unknown result.
	maxUncertainAge = 2 * time.Minute
)

// Version is one version of one object. An empty ResourceVersion stands for the deletion.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// ShownVersion is a version that a stream has shown.
type ShownVersion struct {
	Version
	// IsDeletionStep is true if the object is gone, or its deletion begins with the version.
	IsDeletionStep bool
	// WasBeingDeleted is true if the stream had shown the object with a deletionTimestamp before.
	WasBeingDeleted bool
	// ChangesSpec is true if the object has another generation than before.
	ChangesSpec bool
	// Replaced is the resource version that the stream had shown before, if no version between the two was missed.
	Replaced string
}

// IsDeletion reports whether the object is gone.
func (v ShownVersion) IsDeletion() bool { return v.UID != "" && v.ResourceVersion == "" }

// Target names the object of a write, in all versions of its resource. The Target of a write to a
// collection has no name.
type Target struct {
	cluster, group, plural, namespace, name string
}

// NewTarget returns the Target of the object k of the resource r.
func NewTarget(r wire.Resource, k kube.Key) Target {
	return Target{k.Cluster, r.Group, r.Plural, k.Namespace, k.Name}
}

// IsCollection reports whether t is a collection.
func (t Target) IsCollection() bool { return t.name == "" }

// IsOf reports whether t is of the resource r in a cluster, in any version of the resource.
func (t Target) IsOf(cluster string, r wire.Resource) bool {
	return t.cluster == cluster && t.group == r.Group && t.plural == r.Plural
}

// KeyWithoutCluster returns the key of t without its cluster.
func (t Target) KeyWithoutCluster() kube.Key { return kube.Key{Namespace: t.namespace, Name: t.name} }

// contains reports whether other is t, or part of the collection t.
func (t Target) contains(other Target) bool {
	if t.name == "" {
		other.name = ""
		if t.namespace == "" {
			other.namespace = ""
		}
	}
	return t == other
}

// Tracker records the latest writes of a controller's reconciles, and classifies the changes that
// streams show. A change is an echo only for the key whose reconcile made the change. Another key may
// wait for the change. A Tracker is safe for concurrent use.
//
// A stream may show a change before the write is answered. Therefore the Tracker holds
// the triggers of the writing key while the write is under way. The answer decides whether the
// triggers are echoes.
type Tracker struct {
	mu sync.Mutex
	// versions holds the versions in the answers to writes, and the origin of each. The versions of
	// writes without effect are left out: see newWriteResult.
	versions map[Version]origin
	// ring holds the keys of versions in the order of their writes. The oldest is at ring[next].
	ring [maxVersions]Version
	next int
	// hasOwnStatus is true if versions may contain writes of the own status.
	hasOwnStatus bool
	// inFlight holds the writes that have not been answered.
	inFlight map[writeID]*unansweredWrites
	// uncertain holds, for each key, the writes of unknown result since the last reconcile that
	// succeeded, the oldest first.
	uncertain map[queue.Key][]uncertainWrite
}

// origin is the key whose reconcile made a version. echo is how certain it is that the reconcile made the version.
// replaced is the version that a write of the own status replaced.
type origin struct {
	key      queue.Key
	echo     queue.Echo
	replaced string
}

// writeID identifies the writes of a key's reconcile to one object.
type writeID struct {
	key    queue.Key
	target Target
}

// unansweredWrites are the writes of a key's reconcile to one object that are under way.
type unansweredWrites struct {
	count int
	// held holds the triggers that may be echoes of the writes.
	held []heldTrigger
}

type heldTrigger struct {
	trigger queue.Trigger
	version ShownVersion
}

// NewTracker returns a Tracker without any writes.
func NewTracker() *Tracker {
	return &Tracker{
		versions: make(map[Version]origin, maxVersions), inFlight: make(map[writeID]*unansweredWrites),
		uncertain: make(map[queue.Key][]uncertainWrite),
	}
}

// Streams are the streams of a controller.
type Streams interface {
	// NewestShown returns the newest version of an object that the streams have shown.
	NewestShown(Target) Version
	// CollectionObjects returns the objects of a collection that the streams show. The value is true for an object that
	// the selector selects, and false for any other object.
	CollectionObjects(collection Target, selector labels.Selector) map[types.UID]bool
}

// Handler returns a handler that records the writes of a reconcile of key. It belongs after
// the no-op check, so that skipped applies are not recorded. streams are the streams of the
// controller. add adds a held trigger to the queue.
//
// ownStatus is the reconciled object if the echoes of its own status are to be found, and the zero Target otherwise.
func (t *Tracker) Handler(
	next wire.Handler, key queue.Key, ownStatus Target, streams Streams, add func(queue.Trigger),
) wire.Handler {
	return &handler{tracker: t, next: next, key: key, ownStatus: ownStatus, streams: streams, add: add}
}

// handler records the writes of one reconcile.
type handler struct {
	tracker   *Tracker
	next      wire.Handler
	key       queue.Key
	ownStatus Target
	streams   Streams
	add       func(queue.Trigger)
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if !r.Verb.IsWrite() {
		return h.next.Do(ctx, r)
	}
	id := writeID{h.key, NewTarget(r.Resource, kube.Key{Cluster: r.Cluster, Namespace: r.Namespace, Name: r.ObjectName()})}
	shownBefore, began := h.streams.NewestShown(id.target), time.Now()
	h.tracker.beginWrite(id)
	var result writeResult
	defer func() {
		for _, t := range h.tracker.endWrite(id, r, result, began) {
			h.add(t)
		}
	}()
	response, err := h.next.Do(ctx, r)
	result = newWriteResult(r, response, err, shownBefore, r.Subresource == "status" && id.target == h.ownStatus)
	if r.Verb == wire.VerbDeleteCollection && result.isUncertain && result.deleted == nil {
		result.deleted = h.possiblyDeleted(id.target, r)
	}
	return response, err
}

// possiblyDeleted returns the objects of a collection that r may have deleted, although the answer is lost: those that
// the streams show and the selector of r selects, and those that the reconciles of the key have written and no stream
// shows yet. Another object was created later, or by somebody else a moment before. Its deletion then counts as the
// work of somebody else, which only hastens a reconcile. The result is nil if there are too many objects.
func (h *handler) possiblyDeleted(collection Target, r *wire.Request) uidSet {
	selector, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		return nil // the server refuses it
	}
	shown := h.streams.CollectionObjects(collection, selector)
	deleted := h.tracker.writtenBy(h.key)
	for uid, isSelected := range shown {
		if isSelected {
			deleted[uid] = struct{}{}
		} else {
			delete(deleted, uid)
		}
	}
	if len(deleted) > maxDeleted {
		return nil
	}
	return deleted
}

// writtenBy returns the objects whose versions the reconciles of a key have made.
func (t *Tracker) writtenBy(key queue.Key) uidSet {
	t.mu.Lock()
	defer t.mu.Unlock()
	written := make(uidSet)
	for v, by := range t.versions {
		if by.key == key {
			written[v.UID] = struct{}{}
		}
	}
	return written
}

// beginWrite records that a write is under way.
func (t *Tracker) beginWrite(id writeID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	writes := t.inFlight[id]
	if writes == nil {
		writes = &unansweredWrites{}
		t.inFlight[id] = writes
	}
	writes.count++
}

// endWrite records the result of a write that began at a time. It returns the triggers that were held because of the
// write, unless other writes still hold them.
func (t *Tracker) endWrite(id writeID, r *wire.Request, result writeResult, began time.Time) []queue.Trigger {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case result.isUncertain:
		t.recordUncertainLocked(id.key, newUncertainWrite(id.target, r, result))
	case result.isCarriedOut:
		t.forgetUncertainLocked(id, began)
	}
	t.recordVersionLocked(result.version, origin{id.key, result.echo, result.replaced})
	writes := t.inFlight[id]
	if writes.count--; writes.count > 0 {
		return nil
	}
	delete(t.inFlight, id)
	triggers := make([]queue.Trigger, 0, len(writes.held))
	for _, h := range writes.held {
		h.trigger.Echo = t.classifyLocked(id, h.version)
		triggers = append(triggers, h.trigger)
	}
	return triggers
}

// recordVersionLocked records the origin of a version, unless it is known already.
func (t *Tracker) recordVersionLocked(v Version, by origin) {
	if _, isKnown := t.versions[v]; v.UID == "" || isKnown {
		return
	}
	delete(t.versions, t.ring[t.next])
	t.versions[v] = by
	t.hasOwnStatus = t.hasOwnStatus || by.echo == queue.OwnStatus
	t.ring[t.next] = v
	t.next = (t.next + 1) % maxVersions
}

func (t *Tracker) recordUncertainLocked(k queue.Key, w uncertainWrite) {
	writes := t.uncertain[k]
	if len(writes) == maxUncertain {
		writes = writes[1:]
	}
	t.uncertain[k] = append(writes, w)
}

// forgetUncertainLocked drops the writes of unknown result to id's target that had ended when a later write to the
// target began. The later write was carried out, so a later change of the object is most likely the work of somebody
// else.
func (t *Tracker) forgetUncertainLocked(id writeID, laterBegan time.Time) {
	writes := slices.DeleteFunc(t.uncertain[id.key],
		func(w uncertainWrite) bool { return w.Target == id.target && !w.ended.After(laterBegan) })
	if len(writes) == 0 {
		delete(t.uncertain, id.key)
		return
	}
	t.uncertain[id.key] = writes
}

// classifyLocked returns whether a change of id's target to a version is an echo for id's key. If a
// write of unknown result may have made the version, the write explains no other version from now
// on.
func (t *Tracker) classifyLocked(id writeID, v ShownVersion) queue.Echo {
	if by, isKnown := t.versions[v.Version]; isKnown {
		switch {
		case by.key != id.key:
			return queue.NotEcho
		case by.echo == queue.OwnStatus && by.replaced != v.Replaced:
			return queue.CertainEcho // the change contains more than the own write of the status
		}
		return by.echo
	}
	writes := t.uncertain[id.key]
	for i, w := range writes {
		if !w.contains(id.target) || time.Since(w.ended) > maxUncertainAge || !w.canExplain(v) {
			continue
		}
		switch {
		case w.name != "":
			t.uncertain[id.key] = slices.Delete(writes, i, i+1)
			t.recordVersionLocked(v.Version, origin{key: id.key, echo: queue.PossibleEcho})
		case w.deleted != nil:
			delete(w.deleted, v.UID)
			t.recordVersionLocked(v.Version, origin{key: id.key, echo: queue.PossibleEcho})
		}
		return queue.PossibleEcho
	}
	return queue.NotEcho
}

// Classify sets the Echo of the triggers that a change of target to the version v has led to. It
// returns the triggers that can be added to the queue, and holds the others.
func (t *Tracker) Classify(target Target, v ShownVersion, triggers []queue.Trigger) []queue.Trigger {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := triggers[:0]
	for _, trigger := range triggers {
		id := writeID{trigger.Key, target}
		trigger.Echo = t.classifyLocked(id, v)
		if writes := t.inFlight[id]; writes != nil && trigger.Echo == queue.NotEcho {
			writes.held = append(writes.held, heldTrigger{trigger, v})
			continue
		}
		rest = append(rest, trigger)
	}
	return rest
}

// ForgetOwnStatus makes the writes of the status of key common echoes, which ask for a reconcile. It is called after a
// cleanup, and after a reconcile that failed.
func (t *Tracker) ForgetOwnStatus(key queue.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hasOwnStatus {
		return
	}
	for v, by := range t.versions {
		if by.key == key && by.echo == queue.OwnStatus {
			by.echo = queue.CertainEcho
			t.versions[v] = by
		}
	}
}

// ForgetVersions drops all versions that writes have made. Later changes to these versions are no echoes.
func (t *Tracker) ForgetVersions() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.versions)
	clear(t.ring[:])
	t.next = 0
}

// ForgetUncertain drops the writes of unknown result of a key. It is called after a reconcile that
// succeeded.
func (t *Tracker) ForgetUncertain(k queue.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.uncertain, k)
}
