package cache

import (
	"fmt"
	"slices"
	"sync"
	"unique"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
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
	owners postings[ident.UID]
	// labels are by key and value, for the keys that were asked for.
	labels  map[string]postings[string]
	indexes []*index
	version string
	synced  bool
	// watch is what is known of the watches of the stream.
	watch watchState
	// newest are the newest changes that the stream has published.
	newest newestChanges
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
		owners: make(postings[ident.UID]), labels: make(map[string]postings[string]),
	}
	if stream.Namespace == "" && !stream.Resource.ClusterScoped {
		s.namespaces = make(postings[unique.Handle[string]])
	}
	// Compressed together, one content tells something of another by its size: none of a
	// Secret is. Its annotations can hold all of it, so that this goes for metadata too.
	s.compressor.off = stream.Resource.IsSecret()
	return s
}

// selects tells a store that does not show all objects. Single reads are served from it only
// of those that it shows.
func (s *Store) selects() bool {
	return s.stream.LabelSelector != "" || s.stream.FieldSelector != "" || s.stream.ShardSelector != ""
}

// Stream is what the store holds.
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

// find is the entry of k, or nil. The caller has the lock, or is the writer.
func (s *Store) find(k kube.Key) *entry {
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

// Index keeps x from now on: every object under the values that the function of x returns
// for it, which is called for every object that is there, and then for every change, by the
// goroutine of the stream, so that it must not block. A panic in it is reported, and its
// object is not indexed. The index can be used when Index has returned; to repeat it does
// nothing. Error: x is no index of what the stream holds, or the stream holds no whole
// objects.
func (s *Store) Index(x *kube.Index) error {
	err := x.CheckResource(s.stream.Resource)
	if err == nil && s.stream.Representation != kube.Full {
		err = fmt.Errorf("the index %q looks at whole objects, and only their metadata is kept", x)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.stream, err)
	}
	s.mu.Lock()
	if there := s.index(x); there != nil {
		s.mu.Unlock()
		<-there.ready
		return nil
	}
	// From now on the writer takes care of what changes.
	added := newIndex(x)
	s.indexes = append(s.indexes, added)
	there := slices.Clone(s.slots)
	s.mu.Unlock()
	for slot, e := range there {
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
			added.set(uint32(slot), values)
		}
		s.mu.Unlock()
	}
	close(added.ready)
	return nil
}

// index is what is kept of x, or nil. The caller has the lock.
func (s *Store) index(x *kube.Index) *index {
	for _, each := range s.indexes {
		if each.of == x {
			return each
		}
	}
	return nil
}

// indexed tells whether x is kept and can be used.
func (s *Store) indexed(x *kube.Index) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	there := s.index(x)
	return there != nil && there.isReady()
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
