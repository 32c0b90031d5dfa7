package cache

import (
	"bytes"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// programOverlay is the overlay of a program with the streams that read from it. It keeps what the requests of
// the program were answered with, until all streams have observed it. All methods can be used concurrently.
type programOverlay struct {
	*overlay.Overlay
	streams *registry
}

// expect records that the streams of an object are expected to show the value e. The overlay has recorded e
// for an answer.
func (o *programOverlay) expect(k overlay.Key, e overlay.Entry) {
	if e.Kind != overlay.Value {
		return
	}
	for s := range o.streams.thatMayHold(k) {
		s.detector.Expect(k.ObjectKey(), e.Version, e.Labels)
	}
}

// overlayEntryOf returns the overlay entry for the answer of a write that succeeded.
func (o *programOverlay) overlayEntryOf(
	r *wire.Request, k overlay.Key, answer ident.Answer, body []byte,
) overlay.Entry {
	m := answer.Metadata
	unknown := overlay.Entry{Kind: overlay.UnknownState, UID: m.UID}
	switch {
	case r.Subresource == "scale" && ident.IsComparable(m.ResourceVersion):
		// The answer has the version of the object, though it is another kind.
		unknown.Version = m.ResourceVersion
		return unknown
	case r.Subresource != "" && r.Subresource != "status":
		return unknown // the answer is not the object but an Eviction or a Binding
	case answer.Kind == "Status":
		// Nothing is left of an object whose deletion is answered so.
		if r.Verb != wire.VerbDelete || answer.Details.UID == "" {
			return unknown
		}
		uid := answer.Details.UID
		return overlay.Entry{Kind: overlay.Tombstone, UID: uid, Holders: []ident.Version{o.shownVersion(k, uid)}}
	case m.UID == "" || !ident.IsComparable(m.ResourceVersion):
		return unknown
	}
	// An object in the answer may be gone all the same: its last finalizer was removed, or its
	// deletion is answered with the object that there was.
	isDeleting := m.DeletionTimestamp != nil
	if (isDeleting || r.Verb == wire.VerbDelete) && !(isDeleting && isDeletionPending(r, m, body)) {
		return overlay.Entry{Kind: overlay.Tombstone, UID: m.UID, Holders: []ident.Version{m.Version()}}
	}
	return o.valueOf(r, k, answer, body)
}

// valueOf returns the overlay entry of an object that the server has answered with. The content of the entry is limited
// to what reads can need.
func (o *programOverlay) valueOf(r *wire.Request, k overlay.Key, answer ident.Answer, body []byte) overlay.Entry {
	m := answer.Metadata
	e := overlay.Entry{
		Kind: overlay.Value, UID: m.UID, Version: m.ResourceVersion, Labels: string(m.Labels),
		Resource: r.Resource, Representation: answeredRepresentation(r),
	}
	if m.UID != "" {
		e.Holders = []ident.Version{m.Version()}
	}
	if e.Representation == wire.Full && !o.areContentsRead(k, r.Resource) {
		e.Representation = wire.MetadataOnly
		if object, err := metadataOf(body); err == nil {
			e.Object = object
		}
		return e
	}
	e.Object = bytes.Clone(body)
	return e
}

// answeredRepresentation returns the representation in which a server answers r. The cache reduces objects to
// a projection, not the server.
func answeredRepresentation(r *wire.Request) wire.Representation {
	if r.Representation == wire.MetadataOnly {
		return wire.MetadataOnly
	}
	return wire.Full
}

// areContentsRead reports whether a store can serve reads of more than the metadata of an object.
// Otherwise its whole content would be kept for nothing. The content of a Secret is not kept for a
// projection, which may have left the secret out.
func (o *programOverlay) areContentsRead(k overlay.Key, r wire.Resource) bool {
	for s := range o.streams.thatMayHold(k) {
		_, isProjected := s.id.Representation.ProjectedFields()
		if isSameResource(s.id.Resource, r) && (s.id.Representation == wire.Full || isProjected && !r.IsSecret()) {
			return true
		}
	}
	return false
}

// isSameResource reports whether two resources have the same URL. A store serves reads in its own version only.
func isSameResource(a, b wire.Resource) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Plural == b.Plural
}

// shownVersion returns the newest version that a store shows of the object of uid. It has no resource
// version if no store shows the object.
func (o *programOverlay) shownVersion(k overlay.Key, uid types.UID) ident.Version {
	latest := ""
	for s := range o.streams.thatMayHold(k) {
		object, ok := s.store.Get(k.ObjectKey())
		if ok && object.UID == uid && (latest == "" || ident.IsNewer(object.ResourceVersion, latest)) {
			latest = object.ResourceVersion
		}
	}
	if !ident.IsComparable(latest) {
		latest = ""
	}
	return ident.NewVersion(uid, latest)
}

// isNeeded reports whether a read can need an entry: the object may be in a stream, and the stream has not
// observed what the entry records. A store that is not synced will be read from after a list. An entry from
// before the beginning of this list is not needed.
func (o *programOverlay) isNeeded(k overlay.Key, e overlay.Entry) bool {
	for s := range o.streams.thatMayHold(k) {
		if !s.store.IsSynced() || s.store.IsUnserved() {
			if !s.store.hasListBegunAfter(e) {
				return true
			}
			continue
		}
		if observation, _ := s.store.observe(k.ObjectKey()); !e.IsObservedBy(observation) {
			return true
		}
	}
	return false
}

// isEffectNeeded reports whether a read can need the effect e on a collection.
func (o *programOverlay) isEffectNeeded(c overlay.Collection, e overlay.CollectionEffect) bool {
	for _, s := range o.streams.snapshot() {
		if c.Overlaps(s.store.collection()) && !(s.store.IsSynced() && e.IsObservedBy(s.store.observeProgress())) {
			return true
		}
	}
	return false
}

// dropObserved drops the entry of an object that was just written or changed, if all streams
// have observed it.
func (o *programOverlay) dropObserved(k overlay.Key) {
	if e, ok := o.Get(k); ok && !o.isNeeded(k, e) {
		o.Drop(k, e)
	}
}

// sweep drops the entries that no read can need, from time to time.
func (o *programOverlay) sweep() { o.Sweep(o.isNeeded, o.isEffectNeeded) }

// isWrittenSinceAbsence reports whether the program has written an object since a stream has proven that the server
// does not serve the resource. Then the server has served the resource again.
func (o *programOverlay) isWrittenSinceAbsence(r wire.Resource, k overlay.Key) bool {
	e, has := o.Get(k)
	return has && !o.isGoneWithResource(k.Cluster, r, e)
}

// isGoneWithResource reports whether a stream of the resource r has proven that the object of e is gone, because the
// server did not serve the resource after e. The stream may have another namespace or selector: the proof is about all
// objects.
func (o *programOverlay) isGoneWithResource(cluster string, r wire.Resource, e overlay.Entry) bool {
	for _, s := range o.streams.snapshot() {
		if s.id.Cluster != cluster || !isSameResource(s.id.Resource, r) {
			continue
		}
		if proof := s.store.absence.Load(); proof != nil && proof.isAfter(e) {
			return true
		}
	}
	return false
}

// lookup finds an object in the overlay and in a store that covers it.
func (o *programOverlay) lookup(
	s *Store, k overlay.Key, r wire.Resource, representation wire.Representation,
) lookupResult {
	// In this order: an entry that is dropped meanwhile is dropped because the store has
	// observed it.
	e, has := o.Get(k)
	if has && o.isGoneWithResource(k.Cluster, s.stream.Resource, e) {
		e = e.AsTombstone()
	}
	if !has {
		stored := s.database.Get(k.ObjectKey())
		return lookupResult{isCertain: true, isPresent: stored != nil, packed: stored}
	}
	observation, stored := s.observe(k.ObjectKey())
	switch e.Read(observation, r, representation) {
	case overlay.Stored:
		return lookupResult{isCertain: true, isPresent: observation.IsPresent, packed: stored}
	case overlay.Answered:
		return lookupResult{isCertain: true, isPresent: true, answer: e.Object}
	case overlay.Absent:
		return lookupResult{isCertain: true}
	default:
		return lookupResult{}
	}
}
