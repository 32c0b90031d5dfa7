package cache

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"unique"

	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/cache/internal/slots"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Store holds the objects of one stream. All methods can be used concurrently; reads wait
// neither for compression nor for each other. Only its [Writer] changes it.
type Store struct {
	stream kube.Stream
	// report reports what went wrong in an index function.
	report func(error)

	mu sync.RWMutex
	// slots holds the entries. It is nil at the slots in free. An object keeps its slot for as
	// long as it exists.
	slots []*entry
	free  []uint32
	table slots.Table
	// namespaces is nil if there can be only one.
	namespaces *recordIndex[unique.Handle[string]]
	// owners finds slots by the UIDs of all owners. A UID that is no UUID is stored as a hash, so
	// the entries that are found must be checked.
	owners *recordIndex[ident.UID]
	// labels finds slots by key and value, for the keys of IndexLabel.
	labels map[string]*recordIndex[string]
	// recordIndexes are namespaces, owners and labels.
	recordIndexes  []replacer
	contentIndexes []*contentIndex
	// version is the resource version that the stream has reached, or empty.
	version string
	// synced is true once the stream has been listed completely.
	synced bool
	// watch is what is known of the watches of the stream.
	watch watchState
	// newest are the newest changes that the stream has published.
	newest newestChanges
	// contentSize is the length of all contents as they are kept, jsonSize as they were sent,
	// in bytes.
	contentSize, jsonSize int64
	// codecs holds, for each codec that contents are written with, their number.
	codecs map[*codec.Codec]int
}

// newStore returns an empty Store and its Writer. The Writer reports errors of index functions
// to reportLater, while other goroutines wait for it; the Store reports them to report.
func newStore(stream kube.Stream, report, reportLater func(error)) (*Store, *Writer) {
	s := &Store{
		stream: stream, report: report, labels: make(map[string]*recordIndex[string]), codecs: make(map[*codec.Codec]int),
	}
	s.owners = newRecordIndex(func(dst []ident.UID, e *entry) []ident.UID {
		for _, o := range e.ownerList() {
			u, _ := ident.NewUID(string(o.UID))
			dst = append(dst, u)
		}
		return dst
	})
	s.recordIndexes = []replacer{s.owners}
	if stream.Namespace == "" && !stream.Resource.ClusterScoped {
		s.namespaces = newRecordIndex(func(dst []unique.Handle[string], e *entry) []unique.Handle[string] {
			return append(dst, e.namespace)
		})
		s.recordIndexes = append(s.recordIndexes, s.namespaces)
	}
	// Contents that are compressed together disclose something of one another by their size. Those
	// of Secrets must not. Their annotations can hold all of a Secret, so that this includes
	// metadata.
	return s, &Writer{store: s, report: reportLater, plain: stream.Resource.IsSecret()}
}

// selects reports whether the stream has a selector. Such a store serves a get only for objects
// that it contains.
func (s *Store) selects() bool {
	return s.stream.LabelSelector != "" || s.stream.FieldSelector != "" || s.stream.ShardSelector != ""
}

// Stream returns the stream that the store holds.
func (s *Store) Stream() kube.Stream { return s.stream }

// Get returns the object of that key. Its Cluster does not count.
func (s *Store) Get(k kube.Key) (Object, bool) {
	s.mu.RLock()
	e := s.find(k)
	s.mu.RUnlock()
	if e == nil {
		return Object{}, false
	}
	return Object{Record: e.record(), entry: e}, true
}

// find returns the entry of k, or nil. The caller holds the lock, or is the writer.
func (s *Store) find(k kube.Key) *entry {
	if slot, ok := s.slotOf(k); ok {
		return s.slots[slot]
	}
	return nil
}

// slotOf returns the slot of k. The caller holds the lock, or is the writer.
func (s *Store) slotOf(k kube.Key) (slot uint32, ok bool) {
	return s.table.Find(hashOfKey(k), func(slot uint32) bool { return s.slots[slot].is(k) })
}

// hashOfSlot returns the hash of the key in a slot. The caller is the writer.
func (s *Store) hashOfSlot(slot uint32) uint64 { return hashOfKey(s.slots[slot].key()) }

func hashOfKey(k kube.Key) uint64 {
	// The names in one namespace differ, and mostly so do the names in all.
	return maphash.String(hashSeed, k.Name) ^ 31*maphash.String(hashSeed, k.Namespace)
}

// Len returns the number of objects.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.Len()
}

// Synced reports whether the stream has been listed completely at least once.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

// Version returns the resource version that the stream has reached: all changes up to it are in
// the store. It is empty before the first list is complete, and goes back only if the server
// does.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// observe returns what the store shows of an object, and the object.
func (s *Store) observe(k kube.Key) (overlay.Observation, Object) {
	s.mu.RLock()
	e, version, openSince := s.find(k), s.version, s.watch.openSince()
	s.mu.RUnlock()
	o := overlay.Observation{Version: version, Selects: s.selects(), OpenSince: openSince}
	if e == nil {
		return o, Object{}
	}
	r := e.record()
	o.Present, o.UID, o.ResourceVersion = true, r.UID, r.ResourceVersion
	return o, Object{Record: r, entry: e}
}

// progress returns how far the stream has got.
func (s *Store) progress() overlay.Observation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return overlay.Observation{Version: s.version, OpenSince: s.watch.openSince()}
}

// isWatching reports whether the watch of the stream is open.
func (s *Store) isWatching() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.watch.open
}

// newestIn returns the newest change that the stream has published in a namespace; an empty
// namespace asks for all.
func (s *Store) newestIn(namespace string) newestChange {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.newest.in(namespace)
}

// stats returns the figures that the store knows.
func (s *Store) stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{Synced: s.synced, Objects: s.table.Len(), Bytes: s.contentSize, JSON: s.jsonSize}
	for c := range s.codecs {
		st.Dictionary += int64(c.DictionarySize())
	}
	return st
}

// Index keeps x from now on: every object under the values that the function of x returns for
// it. The goroutine of the stream calls the function for every change, so it must not block. A
// panic in it is reported to [OnError], and then the object counts as one that has every value:
// see [Filter]. The index can be used once Index has returned. To add an index twice has no
// effect. Error: x is not an index of what the stream holds, or the stream holds metadata only.
func (s *Store) Index(x *kube.Index) error {
	err := x.CheckResource(s.stream.Resource)
	if err == nil && s.stream.Representation != kube.Full {
		err = fmt.Errorf("the index %q looks at whole objects, and only their metadata is kept", x)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.stream, err)
	}
	s.mu.Lock()
	if existing := s.contentIndex(x); existing != nil {
		s.mu.Unlock()
		<-existing.ready
		return nil
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
		object, err := e.append(nil)
		var values []string
		if err == nil {
			values, err = added.valuesOf(e.key(), object)
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
	return nil
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

// hasIndex reports whether x is kept and can be used.
func (s *Store) hasIndex(x *kube.Index) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	existing := s.contentIndex(x)
	return existing != nil && existing.isReady()
}

// hasPanicked reports whether the function of x has panicked, so that objects may count that do
// not have a value.
func (s *Store) hasPanicked(x *kube.Index) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	existing := s.contentIndex(x)
	return existing != nil && existing.hasPanicked
}

// IndexLabel makes it cheap to select by the equality of the label key. It changes no result.
// To add a key twice has no effect.
func (s *Store) IndexLabel(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels[key] != nil {
		return
	}
	x := newRecordIndex(func(dst []string, e *entry) []string {
		if v, ok := e.labels().Lookup(key); ok {
			dst = append(dst, v)
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
