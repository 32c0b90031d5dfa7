package cache

import (
	"slices"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// What follows is for the writer of a store alone.

// put takes in an entry, whose content is raw, and returns the one that it replaces.
func (s *Store) put(e *entry, raw []byte, listing bool) (old *entry) {
	s.mu.RLock()
	indexes := s.indexes
	s.mu.RUnlock()
	values := s.valuesOf(indexes, e, raw)

	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.indexes) > len(indexes) { // an index was added just now
		values = append(values, s.valuesOf(s.indexes[len(indexes):], e, raw)...)
	}
	slot, there := s.table.find(s.slots, e.key())
	if there {
		old = s.slots[slot]
		s.count(old, -1)
		s.slots[slot] = e
	} else {
		slot = s.take(e)
		s.table.insert(s.slots, slot)
	}
	s.count(e, +1)
	s.newest.record(e.namespace.Value(), e.version.ResourceVersion(), listing)
	s.post(slot, old, e)
	for i, x := range s.indexes {
		x.set(slot, values[i])
	}
	return old
}

// valuesOf are the values of an object in each of the indexes.
func (s *Store) valuesOf(indexes []*index, e *entry, raw []byte) [][]string {
	if len(indexes) == 0 {
		return nil
	}
	values := make([][]string, len(indexes))
	for i, x := range indexes {
		var err error
		if values[i], err = x.valuesOf(e.key(), raw); err != nil {
			s.report(err)
		}
	}
	return values
}

// take puts e into a free slot.
func (s *Store) take(e *entry) (slot uint32) {
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
		s.slots[slot] = e
		return slot
	}
	s.slots = append(s.slots, e)
	return uint32(len(s.slots) - 1)
}

// remove takes out the object of k, and returns its last entry, or nil. The deletion has a
// version, unless it was not observed itself.
func (s *Store) remove(k kube.Key, version string, listing bool) (old *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, there := s.table.find(s.slots, k)
	if !there {
		return nil
	}
	old = s.slots[slot]
	if version == "" {
		s.newest.recordUnknown(k.Namespace)
	} else {
		s.newest.record(k.Namespace, version, listing)
	}
	s.count(old, -1)
	s.post(slot, old, nil)
	for _, x := range s.indexes {
		x.set(slot, nil)
	}
	s.table.remove(s.slots, slot)
	s.slots[slot] = nil
	s.free = append(s.free, slot)
	return old
}

// swap puts e in place of another entry for the same version of an object.
func (s *Store) swap(slot uint32, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(s.slots[slot], -1)
	s.count(e, +1)
	s.slots[slot] = e
}

// advance records how far the stream has got.
func (s *Store) advance(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// beginList records that the stream lists anew.
func (s *Store) beginList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest.beginList()
}

// endList records that a list is complete, which was made at version.
func (s *Store) endList(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.synced = version, true
	s.newest.listed(version)
}

// watchOpened records that a watch of the stream is open from now on.
func (s *Store) watchOpened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.recordOpened()
}

// watchEnded records that the watch of the stream has ended.
func (s *Store) watchEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.recordEnded()
}

// count adds e to the figures, or takes it from them.
func (s *Store) count(e *entry, n int) {
	s.bytes += int64(n * len(e.content()))
	s.json += int64(n) * int64(e.size)
	if e.coding == nil {
		return
	}
	if e.coding.entries == 0 {
		s.codings = append(s.codings, e.coding)
	}
	if e.coding.entries += n; e.coding.entries == 0 {
		s.codings = slices.DeleteFunc(s.codings, func(c *coding) bool { return c == e.coding })
	}
}

// post moves a slot from the postings of one entry to those of another; either may be nil.
func (s *Store) post(slot uint32, old, e *entry) {
	switch {
	case s.namespaces == nil || old != nil && e != nil:
	case old != nil:
		s.namespaces.remove(old.namespace, slot)
	default:
		s.namespaces.add(e.namespace, slot)
	}
	var was, is []Owner
	if old != nil {
		was = old.ownerList()
	}
	if e != nil {
		is = e.ownerList()
	}
	if !slices.Equal(was, is) {
		for _, o := range was {
			u, _ := ident.NewUID(string(o.UID))
			s.owners.remove(u, slot)
		}
		for _, o := range is {
			u, _ := ident.NewUID(string(o.UID))
			s.owners.add(u, slot)
		}
	}
	for key, p := range s.labels {
		var was, is string
		var had, has bool
		if old != nil {
			was, had = old.labels().Lookup(key)
		}
		if e != nil {
			is, has = e.labels().Lookup(key)
		}
		if had == has && was == is {
			continue
		}
		if had {
			p.remove(was, slot)
		}
		if has {
			p.add(is, slot)
		}
	}
}
