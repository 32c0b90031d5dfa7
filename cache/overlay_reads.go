package cache

import (
	"bytes"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// finding is what is known of an object without asking the server.
type finding struct {
	// sure is false for a doubt.
	sure    bool
	present bool
	// record is that of the object; of one that is not from a store, only if it was asked for.
	record Record
	// object is from the store, unless written is set.
	object  Object
	written []byte
}

// bytes is a copy of the object.
func (f finding) bytes() ([]byte, error) {
	if f.written != nil {
		return bytes.Clone(f.written), nil
	}
	return f.object.Bytes()
}

// look finds an object in a store that covers it, and in the overlay.
func (c *Cache) look(store *Store, k overlayKey, r kube.Resource, form kube.Representation) finding {
	// In this order: an entry that goes meanwhile, goes because the store has seen it; and
	// what the store shows is at least as new as its version was before.
	e, has := c.overlay.get(k)
	version := store.Version()
	object, there := store.Get(kube.Key{Namespace: k.namespace, Name: k.name})
	stored := finding{sure: true, present: there, object: object, record: object.Record}
	gone := finding{sure: true}
	switch {
	case !has || e.passed(version, object.Record, there, store.selects()):
		return stored
	case e.kind == tombstone && !there:
		return gone
	case e.kind == doubt || e.old():
		return finding{}
	case e.kind == tombstone:
		// Of another than those that are gone, it is perhaps not known who came first.
		if _, known := e.lastSeen(); known || e.saw(object.UID) {
			return gone
		}
		return finding{}
	case !e.serves(r, form):
		return finding{} // written in another version or form than it is read in
	default:
		return finding{sure: true, present: true, written: e.object}
	}
}

// shows is what a read of the metadata would show without a request. It is not ok if that
// is not known.
func (v *View) shows(k overlayKey, r kube.Resource) (finding, bool) {
	for _, form := range []kube.Representation{kube.MetadataOnly, kube.Full} {
		store, partial := v.storeFor(k, r, form, anyStore)
		if store == nil {
			continue
		}
		f := v.cache.look(store, k, r, form)
		if !f.sure || !f.present && partial {
			return f, false
		}
		if f.written != nil {
			var err error
			if f.record, err = recordOf(f.written); err != nil {
				return f, false
			}
		}
		return f, true
	}
	return finding{}, false
}

// versionOf is a version at which an object of that uid was there, if a store shows it.
func (c *Cache) versionOf(k overlayKey, uid types.UID) string {
	latest := ""
	for _, s := range c.snapshot() {
		if !s.concerns(k) {
			continue
		}
		if o, ok := s.store.Get(kube.Key{Namespace: k.namespace, Name: k.name}); ok && o.UID == uid && (latest == "" || newer(o.ResourceVersion, latest)) {
			latest = o.ResourceVersion
		}
	}
	if !comparableVersion(latest) {
		return ""
	}
	return latest
}

// concerns tells whether an object is in the stream, unless a selector leaves it out.
func (s *stream) concerns(k overlayKey) bool {
	h := s.handle
	return h.Cluster == k.cluster && h.Resource.Group == k.group && h.Resource.Plural == k.plural &&
		(h.Namespace == "" || h.Namespace == k.namespace)
}

// needed tells whether a read can need an entry: as long as there is a stream that the
// object may be in, and that has not seen yet what the entry is about. A store that is not
// synced is one that will be read from; and it may have been listed before the write.
func (c *Cache) needed(k overlayKey, e overlayEntry) bool {
	for _, s := range c.snapshot() {
		if !s.concerns(k) {
			continue
		}
		synced, version := s.store.Synced(), s.store.Version()
		o, there := s.store.Get(kube.Key{Namespace: k.namespace, Name: k.name})
		if !synced || !e.passed(version, o.Record, there, s.store.selects()) {
			return true
		}
	}
	return false
}

// What no version is known for is kept for longer than a stream can be silent without being
// replaced; doubts, as long as there are few of them, until somebody asks.
const (
	fewDoubts = 1024
	oldDoubt  = 15 * time.Minute
)

// tidy takes away what is not needed any more of an entry.
func (c *Cache) tidy(k overlayKey, e overlayEntry, many bool) {
	overdue := (e.kind == tombstone || e.kind == doubt && many) && time.Since(e.at) > oldDoubt
	if overdue || !c.needed(k, e) {
		c.overlay.drop(k, e)
	}
}

// tidyKey does so for one object, which was just written or told.
func (c *Cache) tidyKey(k overlayKey) {
	if e, ok := c.overlay.get(k); ok {
		c.tidy(k, e, false)
	}
}

// sweep does so for all, from time to time.
func (c *Cache) sweep() {
	entries, scopes := c.overlay.due()
	if entries == nil {
		return
	}
	for k, e := range entries {
		c.tidy(k, e, len(entries) > fewDoubts)
	}
	for s, d := range scopes {
		if c.settled(s, d) {
			c.overlay.dropScope(s, d)
		}
	}
	c.overlay.swept()
}

// settled tells whether all streams have seen what happened in a collection.
func (c *Cache) settled(doubted scope, d scopeDoubt) bool {
	for _, s := range c.snapshot() {
		h := s.handle
		if !doubted.overlaps(scope{h.Cluster, h.Resource.Group, h.Resource.Plural, h.Namespace}) {
			continue
		}
		if !(s.store.Synced() && d.version != "" && reached(s.store.Version(), d.version)) {
			return false
		}
	}
	return true
}
