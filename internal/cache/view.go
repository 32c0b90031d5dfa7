package cache

import (
	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/kube/wire"
)

// View is the cache as one controller may see it. A View never answers from a store that is behind the
// published changes of the controller's own streams.
//
// Otherwise a reconcile could read the state before the change that triggered it, from the store of another
// stream. Nothing would trigger the reconcile again when that store has caught up.
//
// A View is safe for concurrent use.
type View struct {
	overlay *programOverlay
	// own holds the streams whose changes trigger the controller.
	own []*followedStream
}

// Handler returns a handler like [Cache.Handler]. The reads of the handler use only stores that v may see.
func (v *View) Handler(next wire.Handler) wire.Handler {
	return &handler{view: v, next: next, writer: writeHandler{view: v, next: next}}
}

// KnownState returns the current state of the object that ref names, as far as it is certain. The UID of ref
// does not count. KnownState makes no request.
//
// The state comes from a synced store with an open watch, and from the answers to this program's own writes. A
// store of whole objects precedes a store of metadata. The state is not certain if there is no such store, or
// if the effect of a write is not known. It is not certain either while no watch is open: the store does not
// change before another watch opens.
func (v *View) KnownState(ref wire.Ref) KnownState {
	for _, representation := range []wire.Representation{wire.Full, wire.MetadataOnly} {
		if state := v.knownState(ref, representation); state.IsCertain {
			return state
		}
	}
	return KnownState{}
}

// AppendObject appends to dst the JSON of the object that ref names, as a get by [View.Handler] returns it. It returns
// false if that takes a request, or if there is no object. The UID of ref does not count.
func (v *View) AppendObject(dst []byte, ref wire.Ref, representation wire.Representation) ([]byte, bool) {
	k := overlay.KeyOf(ref)
	store, _ := v.storeFor(k, ref.Resource, representation, anyStore)
	if store == nil || len(v.overlay.CollectionEffects(k.Collection)) > 0 {
		return dst, false
	}
	l := v.overlay.lookup(store, k, ref.Resource, representation)
	if !l.isCertain || !l.isPresent {
		return dst, false
	}
	appended, err := l.appendBytes(dst)
	return appended, err == nil
}

func (v *View) knownState(ref wire.Ref, representation wire.Representation) KnownState {
	k := overlay.KeyOf(ref)
	store, isPartial := v.storeFor(k, ref.Resource, representation, (*Store).isWatching)
	if store == nil || !v.isWatching(k) {
		return KnownState{}
	}
	for _, effect := range v.overlay.CollectionEffects(k.Collection) {
		if !effect.IsObservedBy(store.observeProgress()) {
			return KnownState{}
		}
	}
	l := v.overlay.lookup(store, k, ref.Resource, representation)
	if !l.isCertain || !l.isPresent && isPartial {
		return KnownState{}
	}
	record, err := l.record()
	if err != nil {
		return KnownState{}
	}
	return KnownState{IsCertain: true, IsPresent: l.isPresent, Record: record, Representation: representation, found: l}
}

// isCurrent reports whether a read in a namespace may use the store of s. The store must have every change that
// the own streams of v have published there, and must not be in doubt because of a restoration. An empty
// namespace stands for all. The changes of all objects count, because the object may have left the
// selector of an own stream.
//
// The absence of a kind has no version. Example: an own stream finds that the server does not serve webapps, and
// publishes the deletion of the webapp shop in the namespace a. From then on a store is current only if its stream has
// found the same. If the next list of the own stream fails, no other store is current in the namespace a, because the
// deletion of shop still has no version.
func (v *View) isCurrent(s *followedStream, namespace string) bool {
	if s.detector.IsDoubted() {
		return false
	}
	c := s.store.collection()
	c.Namespace = namespace
	for _, own := range v.own {
		if own == s || !own.store.collection().Overlaps(c) {
			continue
		}
		switch {
		case own.store.IsUnserved() && s.store.IsUnserved():
		case own.store.IsUnserved(), !own.store.progress.HasNewest(s.store.Version(), namespace):
			return false
		}
	}
	return true
}

// isWatching reports whether every own stream of v that can show an object has an open watch. The stream may
// miss what happens to the object while no watch is open. Example: an object created and deleted in that time
// is in neither the store nor the next list.
func (v *View) isWatching(k overlay.Key) bool {
	for _, own := range v.own {
		if own.store.mayHold(k) && !own.store.isWatching() {
			return false
		}
	}
	return true
}

// anyStore returns true. It is for callers of storeFor that have no condition.
func anyStore(*Store) bool { return true }

// coveringStore returns a synced store of the objects of r in a namespace. The store meets the condition, which has to
// require that the selectors of the stream leave nothing out. The store holds the objects in the
// representation, or as whole objects. A store in the representation comes first. The store is current for v. An empty
// namespace stands for all. coveringStore returns nil if there is no such store.
func (v *View) coveringStore(
	cluster string, r wire.Resource, namespace string, representation wire.Representation, condition func(*Store) bool,
) *Store {
	if r.ClusterScoped {
		namespace = ""
	}
	var found *Store
	var isExact bool
	for _, s := range v.overlay.streams.snapshot() {
		if s.id.Cluster != cluster || !isSameResource(s.id.Resource, r) ||
			s.id.Namespace != "" && s.id.Namespace != namespace ||
			s.id.Representation != representation && s.id.Representation != wire.Full ||
			!s.store.IsSynced() || !v.isCurrent(s, namespace) || !condition(s.store) {
			continue
		}
		if found == nil || !isExact {
			found, isExact = s.store, s.id.Representation == representation
		}
	}
	return found
}

// storeFor returns a store to read one object from. The store is current for v, and meets the condition. A store with
// every object of the kind and namespace comes first. Next comes a store that has a selector and contains the object.
// Then isPartial is true: an object that is not in such a store may exist all the same. storeFor returns nil if there
// is neither.
func (v *View) storeFor(
	k overlay.Key, r wire.Resource, representation wire.Representation, condition func(*Store) bool,
) (store *Store, isPartial bool) {
	isWhole := func(s *Store) bool { return !s.hasSelector() && condition(s) }
	if store = v.coveringStore(k.Cluster, r, k.Namespace, representation, isWhole); store != nil {
		return store, false
	}
	for _, s := range v.overlay.streams.snapshot() {
		if !s.store.mayHold(k) || !s.store.hasSelector() || !isSameResource(s.id.Resource, r) ||
			s.id.Representation != representation && s.id.Representation != wire.Full ||
			!s.store.IsSynced() || !v.isCurrent(s, k.Namespace) || !condition(s.store) {
			continue
		}
		if _, has := s.store.Get(k.ObjectKey()); has {
			return s.store, true
		}
	}
	return nil, false
}

// lookupMetadata returns the record that a read of the metadata would show. isPresent is false if
// the read would show no object. isCertain is false if the read would need a request.
func (v *View) lookupMetadata(k overlay.Key, r wire.Resource) (record Record, isPresent, isCertain bool) {
	for _, representation := range []wire.Representation{wire.MetadataOnly, wire.Full} {
		store, isPartial := v.storeFor(k, r, representation, anyStore)
		if store == nil {
			continue
		}
		l := v.overlay.lookup(store, k, r, representation)
		if !l.isCertain || !l.isPresent && isPartial {
			return Record{}, false, false
		}
		record, err := l.record()
		return record, l.isPresent, err == nil
	}
	return Record{}, false, false
}
