package cache

import (
	"fmt"
	"iter"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache/internal/database"
	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/cache/internal/progress"
	"github.com/yare-go/yare/internal/cache/internal/restoration"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Store holds the objects of one stream. All methods can be used concurrently; reads wait
// neither for compression nor for each other. Only the stream changes it.
type Store struct {
	stream   wire.Stream
	database *database.Database
	progress *progress.Progress
	// listBegan is the tick at which the latest list began. It is 0 before the first list.
	listBegan  atomic.Uint64
	isUnserved atomic.Bool
	// isUnlisted is true once the stream has published Unlisted.
	isUnlisted atomic.Bool
	// absence is the latest proof of the stream that the server does not serve the resource. It is nil if the stream has
	// completed a list of objects since.
	absence atomic.Pointer[absence]
}

// Filter narrows what [Store.All] returns. All conditions that are set must match; the zero
// value matches everything.
type Filter struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels is nil for all labels.
	Labels labels.Selector
	// Owner is the UID of one of the owner references, or empty.
	Owner types.UID
	// Index is nil, or an index that was added by [Store.Index]. Value is a value that its function
	// must have returned for an object. An object for which the function panicked matches.
	Index wire.Index
	Value string
}

// Stream returns the stream that the store holds.
func (s *Store) Stream() wire.Stream { return s.stream }

// Get returns the object of the key k, and whether the store has it. The Cluster of k does not count.
func (s *Store) Get(k kube.Key) (Object, bool) {
	p := s.database.Get(k)
	return objectOf(p), p != nil
}

// All returns the objects that match when it is called, in no order, whatever happens to the
// store afterwards. It decompresses nothing. It panics if f names an index that the store does
// not keep.
func (s *Store) All(f Filter) iter.Seq[Object] {
	if f.Index != nil {
		if isKept, _ := s.database.HasIndex(f.Index); !isKept {
			panic(fmt.Sprintf("%s: the index %q is not kept: add it with Store.Index", s.stream, f.Index))
		}
	}
	selected := s.database.Select(database.Filter(f))
	return func(yield func(Object) bool) {
		for p := range selected.All {
			if !yield(objectOf(p)) {
				return
			}
		}
	}
}

// Index adds x to the store. The store then keeps every object under the values that the function of x
// returns for the object. The goroutine of the stream calls the function for every change, so it must not
// block. A panic in it is reported to [OnError], and then the object counts as if it had every value: see
// [Filter]. The index can be used once Index has returned. Adding an index twice has no effect. Index returns
// an error if x is not an index of the stream's kind, or if the stream holds metadata only.
func (s *Store) Index(x wire.Index) error {
	if err := x.Check(s.stream.Resource, s.stream.Representation); err != nil {
		return fmt.Errorf("%s: %w", s.stream, err)
	}
	s.database.Index(x)
	return nil
}

// IndexLabel makes it cheap to select by the equality of the label key. It changes no result.
// Adding a key twice has no effect.
func (s *Store) IndexLabel(key string) { s.database.IndexLabel(key) }

// Len returns the number of objects.
func (s *Store) Len() int { return s.database.Len() }

// IsSynced reports whether the stream has been listed completely at least once.
func (s *Store) IsSynced() bool { return s.database.IsComplete() }

// Version returns the resource version that the stream has reached: all changes up to it are in
// the store. It is empty before the first list is complete, and goes back only if the server
// was restored from a backup.
func (s *Store) Version() string { return s.database.Version() }

// IsUnserved reports whether the server does not serve the resource, by the latest list.
func (s *Store) IsUnserved() bool { return s.isUnserved.Load() }

// hasListBegunAfter reports whether the latest list began after e was recorded. Then the list shows what e
// records, or a later state.
func (s *Store) hasListBegunAfter(e overlay.Entry) bool {
	return e.IsRecordedBefore(overlay.Tick(s.listBegan.Load()))
}

// hasSelector reports whether the stream has a selector. Such a store serves a get only for objects
// that it contains.
func (s *Store) hasSelector() bool {
	return s.stream.LabelSelector != "" || s.stream.FieldSelector != "" || s.stream.ShardSelector != ""
}

// collection returns the collection of the objects of the stream, without regard to its selectors.
func (s *Store) collection() overlay.Collection {
	r := s.stream.Resource
	return overlay.Collection{Cluster: s.stream.Cluster, Group: r.Group, Plural: r.Plural, Namespace: s.stream.Namespace}
}

// mayHold reports whether an object is in the stream, unless a selector leaves it out.
func (s *Store) mayHold(k overlay.Key) bool { return s.collection().Contains(k) }

// shown returns what the store shows of an object, for a comparison with the answer to a request.
func (s *Store) shown(k kube.Key) restoration.ShownState {
	p, version := s.database.State(k)
	if p == nil {
		return restoration.ShownState{ReachedVersion: version}
	}
	return restoration.ShownState{Object: p.Version(), ReachedVersion: version}
}

// observe returns what the store shows of an object, and the packed object, or nil.
func (s *Store) observe(k kube.Key) (overlay.Observation, *database.PackedObject) {
	// In this order: what the watch has shown by now is in the packed object.
	o := overlay.Observation{OpenSince: s.progress.OpenSince(), HasSelector: s.hasSelector()}
	p, version := s.database.State(k)
	o.Version = version
	if p == nil {
		return o, nil
	}
	o.IsPresent, o.UID, o.ResourceVersion = true, p.UID(), p.ResourceVersion()
	return o, p
}

// observeProgress returns how far the stream has got, without an object.
func (s *Store) observeProgress() overlay.Observation {
	return overlay.Observation{OpenSince: s.progress.OpenSince(), Version: s.Version()}
}

// isWatching reports whether the watch of the stream is open.
func (s *Store) isWatching() bool { return !s.progress.OpenSince().IsZero() }
