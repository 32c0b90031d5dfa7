package cache

import (
	"bytes"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/cache/internal/store"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// lookupResult is what is known of an object without a request.
type lookupResult struct {
	// certain is false if only the server knows. Then nothing else is set.
	certain bool
	present bool
	// object is from a store. It is not set if written is set.
	object Object
	// written is the content that a write was answered with.
	written []byte
}

// bytes returns a copy of the object.
func (l lookupResult) bytes() ([]byte, error) {
	if l.written != nil {
		return bytes.Clone(l.written), nil
	}
	return l.object.Bytes()
}

// record returns the record of the object.
func (l lookupResult) record() (Record, error) {
	if l.written == nil {
		return l.object.Record, nil
	}
	e, err := store.MetadataOf(l.written)
	if err != nil {
		return Record{}, err
	}
	return recordOf(e), nil
}

// lookup finds an object in a store that covers it, and in the overlay.
func (c *Cache) lookup(store *Store, k overlay.Key, r kube.Resource, form kube.Representation) lookupResult {
	// In this order: an entry that is dropped meanwhile is dropped because the store has
	// observed it.
	e, has := c.overlay.Get(k)
	o, object := store.observe(k.In())
	finding := overlay.Stored
	if has {
		finding = e.Read(o, r, form)
	}
	switch finding {
	case overlay.Stored:
		return lookupResult{certain: true, present: o.Present, object: object}
	case overlay.Written:
		return lookupResult{certain: true, present: true, written: e.Object}
	case overlay.Absent:
		return lookupResult{certain: true}
	default:
		return lookupResult{}
	}
}

// lookupMetadata returns the record that a read of the metadata would show. present is false if
// the read would show no object. ok is false if the read would need a request.
func (v *View) lookupMetadata(k overlay.Key, r kube.Resource) (record Record, present, ok bool) {
	for _, form := range []kube.Representation{kube.MetadataOnly, kube.Full} {
		store, partial := v.storeFor(k, r, form, anyStore)
		if store == nil {
			continue
		}
		l := v.cache.lookup(store, k, r, form)
		if !l.certain || !l.present && partial {
			return Record{}, false, false
		}
		record, err := l.record()
		return record, l.present, err == nil
	}
	return Record{}, false, false
}

// observedVersion returns a version at which an object of that UID existed, if a store shows it.
func (c *Cache) observedVersion(k overlay.Key, uid types.UID) string {
	latest := ""
	for _, s := range c.snapshot() {
		if !s.mayHold(k) {
			continue
		}
		if o, ok := s.store.Get(k.In()); ok && o.UID == uid && (latest == "" || ident.IsNewer(o.ResourceVersion, latest)) {
			latest = o.ResourceVersion
		}
	}
	if !ident.IsComparable(latest) {
		return ""
	}
	return latest
}

// collection returns the collection of the objects that s holds, without regard to its selectors.
func (s *stream) collection() overlay.Collection {
	return overlay.Collection{
		Cluster: s.id.Cluster, Group: s.id.Resource.Group, Plural: s.id.Resource.Plural, Namespace: s.id.Namespace,
	}
}

// mayHold reports whether an object is in the stream, unless a selector leaves it out.
func (s *stream) mayHold(k overlay.Key) bool { return s.collection().Contains(k) }

// isNeeded reports whether a read can need an entry: there is a stream that the object may be
// in, and that has not observed what the entry records. A store that is not synced will be read
// from, and may have been listed before the write.
func (c *Cache) isNeeded(k overlay.Key, e overlay.Entry) bool {
	for _, s := range c.snapshot() {
		if !s.mayHold(k) {
			continue
		}
		synced := s.store.Synced()
		if o, _ := s.store.observe(k.In()); !synced || !e.IsObservedBy(o) {
			return true
		}
	}
	return false
}

// isDoubted reports whether a read can need the doubt about a collection.
func (c *Cache) isDoubted(in overlay.Collection, d overlay.CollectionDoubt) bool {
	for _, s := range c.snapshot() {
		if in.Overlaps(s.collection()) && !(s.store.Synced() && d.IsObservedBy(s.store.reached())) {
			return true
		}
	}
	return false
}

// dropObserved drops the entry of an object that was just written or changed, if all streams
// have observed it.
func (c *Cache) dropObserved(k overlay.Key) {
	if e, ok := c.overlay.Get(k); ok && !c.isNeeded(k, e) {
		c.overlay.Drop(k, e)
	}
}
