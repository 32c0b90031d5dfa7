// Package store is a database of objects in memory. It keeps the JSON of each object, compressed
// against a dictionary made of other objects, beside the few decoded fields that selections and
// comparisons need. It finds objects by key, namespace, owner, label, and by the indexes of an
// author.
//
// A [Store] is read by anybody and changed by its [Writer] alone. Neither makes a request, and
// neither knows where the objects come from.
package store

import (
	"slices"
	"sync"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Store holds objects of one kind. All methods can be used concurrently; reads wait neither for
// compression nor for each other. Only its [Writer] changes it.
type Store struct {
	// report receives the errors of index functions that Index calls.
	report func(error)

	// mu guards the fields below. The Writer reads them without mu, because nobody else changes them. Only
	// indexes are added by others too.
	mu      sync.RWMutex
	objects *objectTable
	// version is the resource version that the store has reached, or empty.
	version string
	// isComplete is true once the store has held every object of its selection.
	isComplete bool
	// dictionaries counts the dictionaries that were made so far.
	dictionaries uint64
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

// Stats are the numbers of a Store.
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
	s := &Store{report: o.Report, objects: newObjectTable(o.OneNamespace)}
	return s, &Writer{store: s, objects: s.objects, report: o.ReportWrite, compression: compression{isPlain: o.Plain}}
}

// Get returns the entry of the object of that key, or nil if the store has no such object. The
// Cluster of k does not count.
func (s *Store) Get(k kube.Key) *Entry {
	e, _ := s.State(k)
	return e
}

// State returns the entry of the object of k, or nil. version is the resource version that the store has
// reached at the same moment.
func (s *Store) State(k kube.Key) (e *Entry, version string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.find(k), s.version
}

// Len returns the number of objects.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.table.Len()
}

// IsComplete reports whether the store has held every object of its selection at some time.
func (s *Store) IsComplete() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.isComplete
}

// Version returns the resource version that the store has reached: all changes up to it are in
// the store. It is empty before [Writer.Complete].
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Stats returns the Stats of the store.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stats := s.objects.stats()
	stats.Dictionaries = s.dictionaries
	return stats
}

// Index adds x to the store. The store then keeps every object under the values that the function of x
// returns for the object. The Writer calls the function for every change, so the function must not block. A
// panic in it is reported, and then the object counts as if it had every value: see [Filter]. The index can
// be used once Index has returned. Adding an index twice has no effect.
func (s *Store) Index(x wire.Index) {
	s.mu.Lock()
	if existing := s.objects.contentIndex(x); existing != nil {
		s.mu.Unlock()
		<-existing.ready
		return
	}
	// From now on the writer indexes what changes.
	added := newContentIndex(x)
	s.objects.contentIndexes = append(s.objects.contentIndexes, added)
	entries := slices.Clone(s.objects.slots)
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
		if current := s.objects.slots[slot]; current != nil && current.name == e.name && current.version.Equal(e.version) {
			added.set(uint32(slot), values, err != nil)
		}
		s.mu.Unlock()
	}
	close(added.ready)
}

// HasIndex reports whether x is kept and can be used, and whether its function has panicked: then
// the objects under a value include some that may not have it.
func (s *Store) HasIndex(x wire.Index) (kept, panicked bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	existing := s.objects.contentIndex(x)
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
	s.objects.indexLabel(key)
}

// Select returns the objects that match now. It decompresses nothing. It panics if f names an index
// that the store does not keep.
func (s *Store) Select(f Filter) Selection {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Selection{f, s.objects.candidates(f)}
}
