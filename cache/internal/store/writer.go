package store

import (
	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Writer changes a Store. Each Store has one. It must not be used concurrently. It prepares
// everything outside of the lock of the store: under the lock, one entry takes the place of another.
// It reads the store without the lock, because nobody else changes it.
type Writer struct {
	store *Store
	// report receives errors of index functions and of decompression.
	report func(error)

	builder    builder
	compressor codec.Compressor
	// plain is true if nothing is compressed.
	plain bool
	// recent holds the last entries that were put, in a ring whose oldest is at next.
	recent [samplesEach]*Entry
	next   int
	// cursor is the slot from which on to look for contents that are not written with the current
	// codec, and rewrites how many slots are to be looked at.
	cursor, rewrites int
}

// Has reports whether the store has the version of i, and can return its content.
func (w *Writer) Has(i Item) bool {
	e := w.store.find(i.key)
	return e != nil && e.isReadable() && e.version.Equal(i.version)
}

// Put puts i into the store. It returns the entry that i replaces, or nil, and the entry of i. err is
// about metadata that could not be read; the entry of i is without them.
func (w *Writer) Put(i Item) (before, after *Entry, err error) {
	after, err = w.Build(i)
	return w.putEntry(after, i.json), after, err
}

// putEntry puts the entry of an object into the store, and returns the entry that it replaces, or nil.
func (w *Writer) putEntry(e *Entry, object []byte) (before *Entry) {
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
		of, err := x.valuesOf(e.Key(), object)
		if err != nil {
			w.report(err)
		}
		results = append(results, indexed{of, err != nil})
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	slot, exists := s.slotOf(e.Key())
	if exists {
		before = s.slots[slot]
		s.countLocked(before, -1)
		s.slots[slot] = e
	} else {
		slot = s.allocateLocked(e)
		s.table.Insert(slot, s.hashOfSlot)
	}
	s.countLocked(e, +1)
	for _, x := range s.recordIndexes {
		x.replace(slot, before, e)
	}
	for i, x := range s.contentIndexes {
		x.set(slot, results[i].values, results[i].unknown)
	}
	w.recordRecent(e)
	return before
}

// Remove removes the object of that key from the store, and returns its last entry, or nil.
func (w *Writer) Remove(k kube.Key) (before *Entry) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, exists := s.slotOf(k)
	if !exists {
		return nil
	}
	before = s.slots[slot]
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
func (w *Writer) replace(slot uint32, e *Entry) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(s.slots[slot], -1)
	s.countLocked(e, +1)
	s.slots[slot] = e
}

// MarkUnreadable marks the object of err: a version of it came that could not be read, so the
// content in the store is outdated. From then on err is the error of [Entry.AppendJSON].
func (w *Writer) MarkUnreadable(err *kube.DecodeError) {
	slot, exists := w.store.slotOf(kube.Key{Namespace: err.Ref.Namespace, Name: err.Ref.Name})
	if !exists {
		return
	}
	e := *w.store.slots[slot]
	e.unreadable = err
	w.replace(slot, &e)
}

// Advance records that all changes up to version are in the store. A version that is empty, or
// older than the version of the store, has no effect.
func (w *Writer) Advance(version string) {
	s := w.store
	if version == "" || ident.IsNewer(s.version, version) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// Complete records that the store holds every object, as it was at version. The version may be
// older than the store's version. Complete reports whether the store is complete for the first time.
func (w *Writer) Complete(version string) (first bool) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.complete
	s.version, s.complete = version, true
	return first
}

// allocateLocked puts e into a free slot.
func (s *Store) allocateLocked(e *Entry) (slot uint32) {
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
		s.slots[slot] = e
		return slot
	}
	s.slots = append(s.slots, e)
	return uint32(len(s.slots) - 1)
}

// countLocked adds e to the figures n times.
func (s *Store) countLocked(e *Entry, n int) {
	s.stats.Bytes += int64(n * len(e.content()))
	s.stats.JSON += int64(n) * int64(e.size)
	if e.codec == nil {
		return
	}
	if s.codecs[e.codec] += n; s.codecs[e.codec] == 0 {
		delete(s.codecs, e.codec)
	}
}
