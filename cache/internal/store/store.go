package store

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/cache/internal/slots"
	"github.com/yare-go/yare/kube"
)

// Store holds objects of one kind. All methods can be used concurrently; reads wait neither for
// compression nor for each other. Only its [Writer] changes it.
type Store struct {
	// report receives the errors of index functions that Index calls.
	report func(error)

	mu sync.RWMutex
	// slots holds the entries. It is nil at the slots in free. An object keeps its slot for as
	// long as it exists.
	slots []*Entry
	free  []uint32
	table slots.Table
	// namespaces is nil if there can be only one.
	namespaces *recordIndex
	// owners finds slots by the UIDs of all owners.
	owners *recordIndex
	// labels finds slots by key and value, for the keys of IndexLabel.
	labels map[string]*recordIndex
	// recordIndexes are namespaces, owners and labels.
	recordIndexes  []*recordIndex
	contentIndexes []*contentIndex
	// version is the resource version that the store has reached, or empty.
	version string
	// complete is true once the store has held every object of its selection.
	complete bool
	stats    Stats
	// codecs holds, for each codec that contents are written with, their number.
	codecs map[*codec.Codec]int
}

// Options are the properties of a Store.
type Options struct {
	// OneNamespace is true if all objects are in one namespace, or in none.
	OneNamespace bool
	// Plain is true if the contents are not compressed. Contents that are compressed together
	// disclose something of one another by their size.
	Plain bool
	// Report receives the errors of index functions that [Store.Index] calls. No lock is held.
	Report func(error)
	// ReportWrite receives the errors of index functions and of decompression that occur in the
	// methods of the Writer. It must not use the Writer.
	ReportWrite func(error)
}

// Stats are the figures of a Store.
type Stats struct {
	// Objects is the number of objects.
	Objects int
	// Bytes is the size of the objects' contents in memory, and JSON is the size before they were
	// compressed. Both are in bytes.
	Bytes, JSON int64
	// Dictionary is the size of the dictionaries in use, in bytes.
	Dictionary int64
	// Dictionaries counts the dictionaries that were made so far.
	Dictionaries uint64
}

// New returns an empty Store and its Writer.
func New(o Options) (*Store, *Writer) {
	s := &Store{report: o.Report, labels: make(map[string]*recordIndex), codecs: make(map[*codec.Codec]int)}
	s.owners = newRecordIndex(func(dst []uint64, e *Entry) []uint64 {
		for _, o := range e.Owners() {
			dst = append(dst, hashOfValue(string(o.UID)))
		}
		return dst
	})
	s.recordIndexes = []*recordIndex{s.owners}
	if !o.OneNamespace {
		s.namespaces = newRecordIndex(func(dst []uint64, e *Entry) []uint64 {
			return append(dst, hashOfValue(e.Namespace()))
		})
		s.recordIndexes = append(s.recordIndexes, s.namespaces)
	}
	return s, &Writer{store: s, report: o.ReportWrite, plain: o.Plain}
}

// Get returns the entry of the object of that key, or nil if the store has no such object. The
// Cluster of k does not count.
func (s *Store) Get(k kube.Key) *Entry {
	e, _ := s.State(k)
	return e
}

// State returns the entry of the object of that key, or nil, and the resource version that the
// store has reached with it.
func (s *Store) State(k kube.Key) (e *Entry, version string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(k), s.version
}

// find returns the entry of k, or nil. The caller holds the lock, or is the writer.
func (s *Store) find(k kube.Key) *Entry {
	if slot, ok := s.slotOf(k); ok {
		return s.slots[slot]
	}
	return nil
}

// slotOf returns the slot of k. The caller holds the lock, or is the writer.
func (s *Store) slotOf(k kube.Key) (slot uint32, ok bool) {
	return s.table.Find(hashOfKey(k), func(slot uint32) bool { return s.slots[slot].hasKey(k) })
}

// hashOfSlot returns the hash of the key in a slot. The caller is the writer.
func (s *Store) hashOfSlot(slot uint32) uint64 { return hashOfKey(s.slots[slot].Key()) }

func hashOfKey(k kube.Key) uint64 {
	// The names in one namespace differ, and the names in all namespaces mostly differ too.
	return maphash.String(hashSeed, k.Name) ^ 31*maphash.String(hashSeed, k.Namespace)
}

// Len returns the number of objects.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.Len()
}

// IsComplete reports whether the store has held every object of its selection at some time.
func (s *Store) IsComplete() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.complete
}

// Version returns the resource version that the store has reached: all changes up to it are in
// the store. It is empty before [Writer.Complete].
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Stats returns the figures of the store.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.stats
	st.Objects = s.table.Len()
	for c := range s.codecs {
		st.Dictionary += int64(c.DictionarySize())
	}
	return st
}

// Index adds x to the store, which then keeps every object under the values that the function of x
// returns for it. The Writer calls the function for every change, so the function must not block. A
// panic in it is reported, and then the object counts as if it had every value: see [Filter]. The index
// can be used once Index has returned. Adding an index twice has no effect.
func (s *Store) Index(x *kube.Index) {
	s.mu.Lock()
	if existing := s.contentIndex(x); existing != nil {
		s.mu.Unlock()
		<-existing.ready
		return
	}
	// From now on the writer indexes what changes.
	added := newContentIndex(x)
	s.contentIndexes = append(s.contentIndexes, added)
	entries := slices.Clone(s.slots)
	s.mu.Unlock()
	for slot, e := range entries {
		if e == nil {
			continue
		}
		object, err := e.AppendJSON(nil)
		var values []string
		if err == nil {
			values, err = added.valuesOf(e.Key(), object)
		}
		if err != nil {
			s.report(err)
		}
		s.mu.Lock()
		if now := s.slots[slot]; now != nil && now.name == e.name && now.version.Equal(e.version) {
			added.set(uint32(slot), values, err != nil)
		}
		s.mu.Unlock()
	}
	close(added.ready)
}

// contentIndex returns the index of x, or nil. The caller holds the lock.
func (s *Store) contentIndex(x *kube.Index) *contentIndex {
	for _, each := range s.contentIndexes {
		if each.of == x {
			return each
		}
	}
	return nil
}

// HasIndex reports whether x is kept and can be used, and whether its function has panicked: then
// the objects under a value include some that may not have it.
func (s *Store) HasIndex(x *kube.Index) (kept, panicked bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	existing := s.contentIndex(x)
	if existing == nil || !existing.isReady() {
		return false, false
	}
	return true, existing.hasPanicked
}

// IndexLabel makes it cheap to select by the equality of the label key. It changes no result.
// Adding a key twice has no effect.
func (s *Store) IndexLabel(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels[key] != nil {
		return
	}
	x := newRecordIndex(func(dst []uint64, e *Entry) []uint64 {
		if v, ok := e.Labels().Lookup(key); ok {
			dst = append(dst, hashOfValue(v))
		}
		return dst
	})
	for slot, e := range s.slots {
		if e != nil {
			x.replace(uint32(slot), nil, e)
		}
	}
	s.labels[key] = x
	s.recordIndexes = append(s.recordIndexes, x)
}
