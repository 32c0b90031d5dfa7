package cache

import (
	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// Writer changes a Store. Each Store has one, which its stream holds. It must not be used
// concurrently. It prepares everything outside of the lock of the store: under the lock, one
// entry takes the place of another. It reads the store without the lock, because nobody else
// changes it.
type Writer struct {
	store *Store
	// report receives errors of index functions and of decompression.
	report func(error)
	// listing is true from the beginning of a list to its end. The versions of the objects in
	// between are in no order, and do not advance the store.
	listing bool

	builder    builder
	compressor codec.Compressor
	// plain is true if nothing is compressed.
	plain bool
	// recent holds the last entries that were put, in a ring whose oldest is at next.
	recent [samplesEach]*entry
	next   int
	// cursor is the slot from which on to look for contents that are not written with the current
	// codec, and rewrites how many slots are to be looked at.
	cursor, rewrites int
}

// upsert puts the object of c into the store, and returns its entry and the one that it
// replaces. after is nil if the store had that version. err is about metadata that could not be
// read; the entry is without them.
func (w *Writer) upsert(c watch.Change) (before, after *entry, err error) {
	e, err := w.build(c)
	if existing := w.store.find(c.Key); existing != nil && existing.version.Equal(e.version) && existing.isReadable() {
		w.advance(c.ResourceVersion)
		return existing, nil, err
	}
	before = w.put(e, c)
	w.advance(c.ResourceVersion)
	return before, e, err
}

// put puts the entry of the object of c into the store, and returns the one that it replaces.
func (w *Writer) put(e *entry, c watch.Change) (before *entry) {
	s := w.store
	type indexed struct {
		values  []string
		unknown bool
	}
	var results []indexed
	s.mu.Lock()
	for len(results) < len(s.contentIndexes) { // others may add an index meanwhile
		x := s.contentIndexes[len(results)]
		s.mu.Unlock()
		of, err := x.valuesOf(e.key(), c.Object)
		if err != nil {
			w.report(err)
		}
		results = append(results, indexed{of, err != nil})
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	slot, exists := s.slotOf(e.key())
	if exists {
		before = s.slots[slot]
		s.countLocked(before, -1)
		s.slots[slot] = e
	} else {
		slot = s.allocateLocked(e)
		s.table.Insert(slot, s.hashOfSlot)
	}
	s.countLocked(e, +1)
	s.newest.record(e.namespace.Value(), c.ResourceVersion, w.listing)
	for _, x := range s.recordIndexes {
		x.replace(slot, before, e)
	}
	for i, x := range s.contentIndexes {
		x.set(slot, results[i].values, results[i].unknown)
	}
	w.recordRecent(e)
	return before
}

// remove removes the object of c from the store, and returns its last entry, or nil.
func (w *Writer) remove(c watch.Change) (before *entry) {
	version := c.ResourceVersion
	if c.Object == nil { // the deletion was not observed: the version is that of the last state
		version = ""
	}
	before = w.drop(c.Key, version)
	w.advance(version)
	return before
}

func (w *Writer) drop(k kube.Key, version string) (before *entry) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, exists := s.slotOf(k)
	if !exists {
		return nil
	}
	before = s.slots[slot]
	if version == "" {
		s.newest.recordUnknown(k.Namespace)
	} else {
		s.newest.record(k.Namespace, version, w.listing)
	}
	s.countLocked(before, -1)
	for _, x := range s.recordIndexes {
		x.replace(slot, before, nil)
	}
	for _, x := range s.contentIndexes {
		x.set(slot, nil, false)
	}
	s.table.Remove(slot, s.hashOfSlot)
	s.slots[slot] = nil
	s.free = append(s.free, slot)
	return before
}

// replace puts e in place of another entry for the same version of an object.
func (w *Writer) replace(slot uint32, e *entry) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(s.slots[slot], -1)
	s.countLocked(e, +1)
	s.slots[slot] = e
}

// markUnreadable marks the object of err: a version of it came whose metadata could not be read,
// so that the content in the store is outdated.
func (w *Writer) markUnreadable(err *kube.DecodeError) {
	slot, exists := w.store.slotOf(kube.Key{Namespace: err.Ref.Namespace, Name: err.Ref.Name})
	if !exists {
		return
	}
	e := *w.store.slots[slot]
	e.unreadable = err
	w.replace(slot, &e)
}

// advance records that all changes up to version are in the store.
func (w *Writer) advance(version string) {
	s := w.store
	if w.listing || version == "" || ident.IsNewer(s.version, version) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// beginList records that the stream lists anew.
func (w *Writer) beginList() {
	w.listing = true
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.newest.beginList()
}

// recordVanished records that an object in a namespace is gone that the store never contained.
func (w *Writer) recordVanished(namespace string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.newest.recordUnknown(namespace)
}

// endList records that a list is complete, which was made at version. It reports whether the
// list was the first one.
func (w *Writer) endList(version string) (first bool) {
	w.listing = false
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.synced
	s.version, s.synced = version, true
	s.newest.listed(version)
	return first
}

// watchOpened records that a watch of the stream is open from now on.
func (w *Writer) watchOpened() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.watch.recordOpened()
}

// watchEnded records that the watch of the stream has ended.
func (w *Writer) watchEnded() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.watch.recordEnded()
}

// allocateLocked puts e into a free slot.
func (s *Store) allocateLocked(e *entry) (slot uint32) {
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
		s.slots[slot] = e
		return slot
	}
	s.slots = append(s.slots, e)
	return uint32(len(s.slots) - 1)
}

// countLocked adds e to the figures n times.
func (s *Store) countLocked(e *entry, n int) {
	s.contentSize += int64(n * len(e.content()))
	s.jsonSize += int64(n) * int64(e.size)
	if e.codec == nil {
		return
	}
	if s.codecs[e.codec] += n; s.codecs[e.codec] == 0 {
		delete(s.codecs, e.codec)
	}
}
