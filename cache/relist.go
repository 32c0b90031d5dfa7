package cache

import (
	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// beginList records that the stream lists anew. The list shows the effects of every write that
// the overlay has now.
func (s *stream) beginList() {
	s.listBegan = s.cache.overlay.Begin()
	s.listPast = s.cache.past.Load()
	s.writer.beginList()
}

// endList records that a list is complete, and publishes the deletions that neither a watch nor
// the list could show.
func (s *stream) endList(version string) {
	restored := s.store.synced && ident.IsNewer(s.store.version, version)
	vanished := s.takeVanished(restored)
	s.lists.Add(1)
	first := s.writer.endList(version)
	if restored {
		s.cache.recordRestoration(s, version)
	} else {
		// Another stream may have found a restoration while this list ran, and that this store
		// is not affected. If the list is of the lost past all the same, this stream finds that
		// out itself: its watch stays silent.
		s.past.Store(max(s.past.Load(), s.listPast))
	}
	if first {
		s.publish(Change{Type: Synced})
	}
	for _, e := range vanished {
		s.publish(Change{Type: Deleted, Before: e.record(), before: e})
	}
}

// takeVanished returns the objects that this program wrote before the list began, while no watch
// was open, and that the list does not contain: somebody deleted them in the meantime, or they
// no longer match. No watch will ever show that. If the stream has a selector, some of them may
// never have matched. After a restoration it drops the overlay's entries from before.
func (s *stream) takeVanished(restored bool) []*entry {
	var vanished []*entry
	for k, written := range s.cache.overlay.RecordedBefore(s.collection(), s.listBegan) {
		if restored {
			s.cache.overlay.Drop(k, written)
		}
		if written.Kind != overlay.Value || s.store.find(k.In()) != nil {
			continue
		}
		if e := s.entryOf(k, written); e != nil {
			s.writer.recordVanished(k.Namespace)
			vanished = append(vanished, e)
		}
	}
	return vanished
}

// entryOf returns what was written as an entry of this stream, or nil if it cannot be.
func (s *stream) entryOf(k overlay.Key, written overlay.Entry) *entry {
	object := written.Object
	if s.id.Representation == kube.MetadataOnly && object != nil {
		object, _ = metadataOf(object)
	}
	if object == nil {
		return nil
	}
	e, err := s.writer.build(watch.Change{Key: k.In(), UID: written.UID, ResourceVersion: written.Version, Object: object})
	if err != nil {
		return nil
	}
	return e
}

// recordRestoration records that s has listed the state of a server that was restored from a
// backup, at version. The stores of other streams are of the past that was lost, until they are
// listed, if they are newer than that version.
func (c *Cache) recordRestoration(s *stream, version string) {
	if past := c.past.Load(); s.past.Load() == past {
		c.past.Store(past + 1)
		for _, other := range c.snapshot() {
			if other.id.Cluster != s.id.Cluster || !ident.IsNewer(other.store.Version(), version) {
				other.past.Store(past + 1)
			}
		}
	}
	s.past.Store(c.past.Load())
}

// isOfPresent reports whether the store of s is not known to be of a past that a restoration has
// undone.
func (c *Cache) isOfPresent(s *stream) bool { return s.past.Load() >= c.past.Load() }
