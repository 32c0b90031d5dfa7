package controller

import (
	"context"
	"sync"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// subscription is one stream of a watched kind.
type subscription struct {
	watched *watchedKind
	// isOwn is true for a stream of the reconciled kind.
	isOwn  bool
	stream kube.Stream
	// synced is closed once the subscription has received all objects.
	synced chan struct{}
	open   *cache.Subscription

	mu sync.Mutex
	// throttle limits the log lines about errors of predicates and map functions. Guarded by mu.
	throttle logThrottle
}

// index adds the indexes of the watched kind to the store.
func (s *subscription) index() error {
	store := s.open.Store()
	for _, key := range s.watched.labelIndexes {
		store.IndexLabel(key)
	}
	for _, x := range s.watched.indexes {
		if err := store.Index(x); err != nil {
			return err
		}
	}
	return nil
}

// contains reports whether the stream selects an object. Then the stream shows the next change
// of the object, whatever it is.
func (s *subscription) contains(r cache.Record) bool {
	o, ok := s.open.Store().Get(r.Key())
	return ok && o.UID == r.UID
}

// covers reports whether the stream can show an object of that key.
func (s *subscription) covers(k kube.Key) bool {
	switch {
	case k.Cluster != s.stream.Cluster:
		return false
	case s.stream.Namespace != "":
		return k.Namespace == s.stream.Namespace
	default:
		return k.Namespace != "" || s.stream.Resource.ClusterScoped
	}
}

// keyOf returns the key of an object of the stream.
func (s *subscription) keyOf(r cache.Record) kube.Key {
	return kube.Key{Cluster: s.stream.Cluster, Namespace: r.Namespace, Name: r.Name}
}

// relatedKeys returns the objects that one state of an object of the stream concerns.
func (s *subscription) relatedKeys(ctx context.Context, r cache.Record, content func() ([]byte, error), to reconciledKind) ([]relatedKey, error) {
	return s.watched.relation.relatedKeys(ctx, watchedObject{s.stream.Cluster, r, content}, to)
}
