package cache

import (
	"fmt"
	"sync"
	"unique"

	"github.com/yare-go/yare/kube"
)

// Store holds the objects of one stream. All methods can be used concurrently; reads wait
// neither for compression nor for each other.
//
// It has one writer, its stream, which prepares everything outside of the lock: under it,
// one entry takes the place of another.
type Store struct {
	stream kube.Stream
	report func(error)

	mu sync.RWMutex
	// slots hold the entries; nil are those in free. An object keeps its slot for as long
	// as it is there.
	slots []*entry
	free  []uint32
	table table
	// namespaces is nil if there can be only one.
	namespaces postings[unique.Handle[string]]
	// owners are by the uids of all owners. A uid that is no plain one is a hash, so that
	// what is found has to be looked at.
	owners postings[uid]
	// labels are by key and value, for the keys that were asked for.
	labels  map[string]postings[string]
	indexes []*index
	version string
	synced  bool
	// bytes is the length of all contents as they are kept, json as they were sent.
	bytes, json int64
	// codings are those that entries are written with.
	codings []*coding

	// builder and compressor are the writer's own.
	builder    builder
	compressor compressor
}

func newStore(stream kube.Stream, report func(error)) *Store {
	s := &Store{
		stream: stream, report: report,
		owners: make(postings[uid]), labels: make(map[string]postings[string]),
	}
	if stream.Namespace == "" && !stream.Resource.Cluster {
		s.namespaces = make(postings[unique.Handle[string]])
	}
	// Compressed together, one content tells something of another by its size: none of a
	// Secret is. Its annotations can hold all of it, so that this goes for metadata too.
	s.compressor.off = isSecrets(stream.Resource)
	return s
}

func isSecrets(r kube.Resource) bool { return r.Group == "" && r.Plural == "secrets" }

// Stream is what the store holds. It may differ from what was asked for in its
// representation: see [KeepSecrets].
func (s *Store) Stream() kube.Stream { return s.stream }

// Get is the object of that key.
func (s *Store) Get(k Key) (Object, bool) {
	s.mu.RLock()
	e := s.find(k)
	s.mu.RUnlock()
	if e == nil {
		return Object{}, false
	}
	return Object{Record: e.record(), entry: e}, true
}

// find is the entry of k, or nil. The caller has the lock, or is the writer.
func (s *Store) find(k Key) *entry {
	if slot, ok := s.table.find(s.slots, k); ok {
		return s.slots[slot]
	}
	return nil
}

// Len is how many objects there are.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.used
}

// Synced is true once the stream has been listed completely. It stays true.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

// Version is the resourceVersion that the stream has progressed to: all changes up to it
// are in the store. It is empty before the first list is complete, and goes back only if
// the server does.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Index adds an index: of every object, under the values that f returns for it. f is called
// for every object that is there, and then for every change, by the goroutine of the
// stream, so that it must be safe for concurrent use and must not block; what it returns
// is copied. A panic in f is reported, and its object is not indexed. The index can be used
// when Index has returned. Error: there is an index of that name.
func (s *Store) Index(name string, f func(Object) []string) error {
	x := newIndex(name, f)
	s.mu.Lock()
	for _, other := range s.indexes {
		if other.name == name {
			s.mu.Unlock()
			return fmt.Errorf("%s: there is an index %q already", s.stream, name)
		}
	}
	// From now on the writer takes care of what changes.
	s.indexes = append(s.indexes, x)
	there := append([]*entry(nil), s.slots...)
	s.mu.Unlock()
	for slot, e := range there {
		if e == nil {
			continue
		}
		values, err := x.valuesOf(Object{Record: e.record(), entry: e})
		if err != nil {
			s.report(err)
		}
		s.mu.Lock()
		if now := s.slots[slot]; now != nil && now.name == e.name && now.sameVersion(e) {
			x.set(uint32(slot), values)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	x.ready = true
	s.mu.Unlock()
	return nil
}

// IndexLabel makes it cheap to select by the equality of the label key. It changes no
// result, and can be repeated.
func (s *Store) IndexLabel(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels[key] != nil {
		return
	}
	p := make(postings[string])
	for slot, e := range s.slots {
		if e == nil {
			continue
		}
		if v, ok := e.labels().Lookup(key); ok {
			p.add(v, uint32(slot))
		}
	}
	s.labels[key] = p
}
