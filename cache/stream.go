package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// stream follows one kube.Stream, keeps its store and publishes its changes. One goroutine does
// so, and one more for each subscriber that joins late, until it has caught up.
type stream struct {
	cache *Cache
	id    kube.Stream
	store *Store
	// users is the number of open subscriptions. Guarded by Cache.mu. At 0 the stream is no
	// longer in the Cache.
	users  int
	cancel context.CancelFunc
	// relister asks for a fresh list of the stream.
	relister watch.Relister
	// running counts the goroutines of the stream.
	running sync.WaitGroup

	// deliver is held while the store changes and the change is published, and while a subscriber
	// receives what the store holds: so each receives every change once, either way.
	deliver sync.Mutex
	// subscriptions are those that receive changes. Guarded by deliver.
	subscriptions []*Subscription
	// writer writes to store. Guarded by deliver.
	writer *Writer
	// listBegan is when the list began, and listPast the past of the Cache at that time.
	listBegan overlay.Tick
	listPast  uint64
	// past is the past that the store is of: see Cache.past.
	past atomic.Uint64
	// recovery, failed and restored belong to the goroutine of the stream. failed are the errors,
	// and restored is the restoration, that it reports once it does not hold deliver any more.
	recovery recovery
	failed   []error
	restored bool

	lists, errors, unreadable atomic.Uint64
	// dictionaries is a copy of the writer's figure that others can read.
	dictionaries atomic.Uint64
}

func newStream(c *Cache, id kube.Stream, cancel context.CancelFunc) *stream {
	s := &stream{cache: c, id: id, cancel: cancel}
	s.store, s.writer = newStore(id,
		func(err error) { s.report(s.indexError(err)) },
		func(err error) { s.failed = append(s.failed, s.indexError(err)) })
	return s
}

// indexError counts an error of an index function, and reports it with the stream.
func (s *stream) indexError(err error) error {
	s.errors.Add(1)
	return fmt.Errorf("%s: %w", s.id, err)
}

// follow lists and watches the stream until ctx ends. It is the goroutine of the stream.
func (s *stream) follow(ctx context.Context) {
	defer s.writer.watchEnded()
	for change, err := range watch.Follow(ctx, s.cache.handler, s.id, watch.WithRelister(&s.relister)) {
		if ctx.Err() != nil {
			return
		}
		recovered := false
		s.deliver.Lock()
		if err != nil {
			s.applyError(err)
		} else {
			s.apply(change)
			recovered = s.recovery.recordChange(change.Type)
		}
		s.deliver.Unlock()
		s.reportFailed()
		if s.restored {
			s.restored = false
			s.cache.publishRestored(s.id.Cluster)
		}
		if recovered && s.cache.options.onRecovered != nil {
			s.cache.options.onRecovered(s.id)
		}
	}
}

// apply applies one change to the store, and publishes it.
func (s *stream) apply(c watch.Change) {
	resting := false
	switch c.Type {
	case watch.ChangeAdded, watch.ChangeModified:
		s.upsert(c)
	case watch.ChangeDeleted:
		s.remove(c)
	case watch.ChangeListStarted:
		s.beginList()
	case watch.ChangeListed:
		resting = true
		s.endList(c.ResourceVersion)
	case watch.ChangeBookmark:
		resting = true
		s.writer.advance(c.ResourceVersion)
	case watch.ChangeWatchOpened:
		s.writer.watchOpened()
	case watch.ChangeWatchEnded:
		s.writer.watchEnded()
	}
	s.writer.maintain(resting)
	s.dictionaries.Store(s.writer.compressor.Adopted())
}

func (s *stream) upsert(c watch.Change) {
	before, after, err := s.writer.upsert(c)
	if err != nil {
		// The content is kept all the same: the older one would be wrong for certain.
		s.unreadable.Add(1)
		s.failed = append(s.failed, &kube.DecodeError{Ref: s.ref(c), ResourceVersion: c.ResourceVersion, Err: err})
	}
	if after == nil {
		return
	}
	s.cache.dropObserved(overlay.KeyOf(s.ref(c)))
	change := Change{Type: Added, After: after.record(), after: after}
	if before != nil && !before.version.HasSameUID(after.version) {
		s.publish(Change{Type: Deleted, Before: before.record(), before: before})
	} else if before != nil {
		change.Type, change.Before, change.before = Modified, before.record(), before
	}
	s.publish(change)
}

func (s *stream) remove(c watch.Change) {
	if before := s.writer.remove(c); before != nil {
		s.cache.dropObserved(overlay.KeyOf(s.ref(c)))
		s.publish(Change{Type: Deleted, Before: before.record(), before: before})
	}
}

// applyError applies an error of the stream.
func (s *stream) applyError(err error) {
	if unreadable, ok := errors.AsType[*kube.DecodeError](err); ok {
		s.writer.markUnreadable(unreadable)
		s.unreadable.Add(1)
	} else {
		s.errors.Add(1)
		s.recovery.recordError()
	}
	s.failed = append(s.failed, err)
}

// reportFailed reports the errors of the last change, without any lock: the author's function
// may use the cache.
func (s *stream) reportFailed() {
	for _, err := range s.failed {
		s.report(err)
	}
	clear(s.failed)
	s.failed = s.failed[:0]
}

func (s *stream) report(err error) {
	if s.cache.options.onError != nil {
		s.cache.options.onError(s.id, err)
	}
}

func (s *stream) ref(c watch.Change) kube.Ref {
	return kube.Ref{Cluster: s.id.Cluster, Resource: s.id.Resource, Namespace: c.Key.Namespace, Name: c.Key.Name, UID: c.UID}
}

// publish passes c to all subscribers, and drops those that have left.
func (s *stream) publish(c Change) {
	open := s.subscriptions[:0]
	for _, sub := range s.subscriptions {
		if sub.publish(c) {
			open = append(open, sub)
		}
	}
	clear(s.subscriptions[len(open):])
	s.subscriptions = open
}

// join adds a subscriber to a running stream. The subscriber receives all objects of the store,
// and every change from then on.
func (s *stream) join(sub *Subscription) {
	s.deliver.Lock()
	defer s.deliver.Unlock()
	for o := range s.store.All(Filter{}) {
		if !sub.publish(Change{Type: Added, After: o.Record, after: o.entry}) {
			return
		}
	}
	if !s.store.synced || sub.publish(Change{Type: Synced}) {
		s.subscriptions = append(s.subscriptions, sub)
	}
}

// stats returns the figures of the stream, without the number of users.
func (s *stream) stats() Stats {
	st := s.store.stats()
	st.Stream, st.Errors, st.DecodeFailures = s.id, s.errors.Load(), s.unreadable.Load()
	st.Restarts, st.Dictionaries = max(s.lists.Load(), 1)-1, s.dictionaries.Load()
	return st
}
