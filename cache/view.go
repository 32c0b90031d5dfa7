package cache

import (
	"errors"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
)

// View is the cache as one controller may see it. It never answers from a store that is behind
// the changes that the controller's own streams have published. Otherwise a reconcile could read
// the state before the change that triggered it, from the store of another stream, and nothing
// would trigger it again when that store has caught up. A View is safe for concurrent use.
type View struct {
	cache *Cache
	// own holds the streams whose changes trigger the controller.
	own []*stream
}

// View returns the cache as one controller may see it. The triggers of the controller come from own.
func (c *Cache) View(own ...*Subscription) *View {
	v := &View{cache: c}
	for _, sub := range own {
		v.own = append(v.own, sub.stream)
	}
	return v
}

// Handler returns a handler like that of [Cache.Handler], whose reads use only stores that v
// may see.
func (v *View) Handler(next kube.Handler) kube.Handler { return &handler{view: v, next: next} }

// isCurrent reports whether the store of s has every change in a namespace that the own streams
// of v have published, and is not of a past that a restoration has undone. An empty namespace
// stands for all. The streams count and not the object, because an object may have left the
// selector of an own stream.
func (v *View) isCurrent(s *stream, namespace string) bool {
	if !v.cache.isOfPresent(s) {
		return false
	}
	c := s.collection()
	c.Namespace = namespace
	for _, own := range v.own {
		if own == s || !own.collection().Overlaps(c) {
			continue
		}
		if !own.store.progress.HasNewest(s.store.Version(), namespace) {
			return false
		}
	}
	return true
}

// isWatching reports whether every own stream of v that can show an object has an open watch.
// What happens to the object while no watch is open may never be shown: an object that is created
// and deleted meanwhile is in neither the store nor the list that follows.
func (v *View) isWatching(k overlay.Key) bool {
	for _, own := range v.own {
		if own.mayHold(k) && !own.store.isWatching() {
			return false
		}
	}
	return true
}

// anyStore returns true: it is the condition on stores that every store meets.
func anyStore(*Store) bool { return true }

// coveringStore returns a synced store that v may see, that meets the condition, and that
// holds every object of r in that namespace, each as fully as asked for. An empty namespace
// stands for all. A store that keeps no more than what is asked for comes first. coveringStore
// returns nil if there is no such store.
func (v *View) coveringStore(cluster string, r kube.Resource, namespace string, form kube.Representation, condition func(*Store) bool) *Store {
	if r.ClusterScoped {
		namespace = ""
	}
	var found *Store
	var exact bool
	for _, s := range v.cache.snapshot() {
		h := s.id
		if h.Cluster != cluster || !isSameResource(h.Resource, r) ||
			s.store.selects() ||
			h.Namespace != "" && h.Namespace != namespace ||
			h.Representation != form && h.Representation != kube.Full ||
			!s.store.Synced() || !v.isCurrent(s, namespace) || !condition(s.store) {
			continue
		}
		if found == nil || !exact {
			found, exact = s.store, h.Representation == form
		}
	}
	return found
}

// storeFor returns a store to read one object from, that v may see and that meets the condition.
// A store that holds every object of the kind and namespace comes first, then one with a selector
// that contains the object. In the second case partial is true: if the object is missing from
// such a store, it may exist nevertheless. The store is nil if there is neither.
func (v *View) storeFor(k overlay.Key, r kube.Resource, form kube.Representation, condition func(*Store) bool) (store *Store, partial bool) {
	if store = v.coveringStore(k.Cluster, r, k.Namespace, form, condition); store != nil {
		return store, false
	}
	for _, s := range v.cache.snapshot() {
		if !s.mayHold(k) || !s.store.selects() || !isSameResource(s.id.Resource, r) ||
			s.id.Representation != form && s.id.Representation != kube.Full ||
			!s.store.Synced() || !v.isCurrent(s, k.Namespace) || !condition(s.store) {
			continue
		}
		if _, there := s.store.Get(k.In()); there {
			return s.store, true
		}
	}
	return nil, false
}

// Live is the state of one object, as far as it is certain without a request.
type Live struct {
	// Known reports whether the state is certain. If it is not, nothing else is set.
	Known bool
	// Present reports whether the object exists. If it does not, nothing below is set.
	Present bool
	Record  Record
	// Representation is the form of the bytes: the whole object, or its metadata only.
	Representation kube.Representation

	found lookupResult
}

var errNotPresent = errors.New("the cache shows no such object")

// Bytes returns a copy of the JSON of the object, in the form that Representation names.
// Each call decompresses it. Bytes returns an error if the object is not present or cannot be read.
func (l *Live) Bytes() ([]byte, error) {
	if !l.Present {
		return nil, errNotPresent
	}
	object, err := l.found.bytes()
	if err != nil || l.Representation == kube.Full {
		return object, err
	}
	return metadataOf(object)
}

// Metadata returns the metadata of the object as the JSON of a PartialObjectMetadata. It returns an
// error if the object is not present or cannot be read.
func (l *Live) Metadata() ([]byte, error) {
	if !l.Present {
		return nil, errNotPresent
	}
	object, err := l.found.bytes()
	if err != nil {
		return nil, err
	}
	return metadataOf(object)
}

// Live returns the current state of the object that ref names, as far as it is certain. The UID
// of ref does not count. The state comes from a synced store with an open watch, and from the
// answers to this program's own writes. A store of whole objects precedes a store of metadata. The
// state is not known if there is no such store, or if a write has left it in doubt: a store
// whose watch has ended does not change before another one opens. Live makes no request.
func (v *View) Live(ref kube.Ref) Live {
	for _, form := range []kube.Representation{kube.Full, kube.MetadataOnly} {
		if live := v.live(ref, form); live.Known {
			return live
		}
	}
	return Live{}
}

func (v *View) live(ref kube.Ref, form kube.Representation) Live {
	k := overlay.KeyOf(ref)
	store, partial := v.storeFor(k, ref.Resource, form, (*Store).isWatching)
	if store == nil || !v.isWatching(k) {
		return Live{}
	}
	for _, d := range v.cache.overlay.Doubts(k.Collection) {
		if !d.IsObservedBy(store.reached()) {
			return Live{}
		}
	}
	l := v.cache.lookup(store, k, ref.Resource, form)
	if !l.certain || !l.present && partial {
		return Live{}
	}
	record, err := l.record()
	if err != nil {
		return Live{}
	}
	return Live{Known: true, Present: l.present, Record: record, Representation: form, found: l}
}
