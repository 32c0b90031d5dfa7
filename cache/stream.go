package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// stream follows one kube.Stream, keeps its store and tells its subscribers. It has one
// goroutine that does so, and one more for each subscriber that joins late, until it has
// caught up.
type stream struct {
	caches *Cache
	handle kube.Stream
	store  *Store
	// users is the number of subscriptions that were not closed. Guarded by Cache.mu; at 0
	// the stream is not in the Cache any more.
	users  int
	cancel context.CancelFunc
	// running are the goroutines of the stream.
	running sync.WaitGroup

	// deliver is held while the store changes and that is told, and while a subscriber is
	// told what is there: so each is told every change once, either way.
	deliver       sync.Mutex
	subscriptions []*Subscription
	// listing is true from the beginning of a list to its end. The versions of the objects
	// in between are in no order, and do not advance the store.
	listing bool
	// recovery is used by the goroutine of the stream alone.
	recovery recovery

	lists, errors, unreadable atomic.Uint64
	// dictionaries is a copy of the compressor's figure that others can read.
	dictionaries atomic.Uint64
}

// follow is the goroutine of the stream.
func (s *stream) follow(ctx context.Context) {
	defer s.store.watchEnded()
	for change, err := range watch.Follow(ctx, s.caches.handler, s.handle) {
		if ctx.Err() != nil {
			return
		}
		s.deliver.Lock()
		if err != nil {
			s.trouble(err)
		} else {
			s.take(change)
			if s.recovery.recordChange(change.Type) && s.caches.options.onRecovered != nil {
				s.caches.options.onRecovered(s.handle)
			}
		}
		s.deliver.Unlock()
	}
}

// take takes in one change.
func (s *stream) take(c watch.Change) {
	switch c.Type {
	case watch.ChangeAdded, watch.ChangeModified:
		s.upsert(c)
	case watch.ChangeDeleted:
		s.remove(c)
	case watch.ChangeListStarted:
		s.listing = true
		s.store.beginList()
	case watch.ChangeListed:
		first := !s.store.synced
		s.listing = false
		s.store.endList(c.ResourceVersion)
		s.lists.Add(1)
		if first {
			s.publish(Change{Type: Synced})
		}
	case watch.ChangeBookmark:
		s.advance(c.ResourceVersion)
	case watch.ChangeWatchOpened:
		s.store.watchOpened()
	case watch.ChangeWatchEnded:
		s.store.watchEnded()
	}
	s.store.tend(c.Type == watch.ChangeListed || c.Type == watch.ChangeBookmark)
	s.dictionaries.Store(s.store.compressor.made)
}

func (s *stream) upsert(c watch.Change) {
	e, err := s.store.entry(c)
	if err != nil {
		// The content is kept all the same: the older one would be wrong for certain.
		s.unreadable.Add(1)
		s.report(&kube.DecodeError{Ref: s.ref(c), ResourceVersion: c.ResourceVersion, Err: err})
	}
	if there := s.store.find(e.key()); there != nil && there.version.Equal(e.version) && there.readable() {
		s.advance(c.ResourceVersion)
		return
	}
	old := s.store.put(e, c.Object, s.listing)
	s.store.compressor.note(e)
	s.advance(c.ResourceVersion)
	s.dropObserved(c)
	change := Change{Type: Added, After: e.record(), after: e}
	if old != nil && !old.version.HasSameUID(e.version) {
		s.publish(Change{Type: Deleted, Before: old.record(), before: old})
	} else if old != nil {
		change.Type, change.Before, change.before = Modified, old.record(), old
	}
	s.publish(change)
}

func (s *stream) remove(c watch.Change) {
	version := ""
	if c.Object != nil { // otherwise c has the version of the last state
		version = c.ResourceVersion
	}
	old := s.store.remove(c.Key, version, s.listing)
	s.advance(version)
	if old != nil {
		s.dropObserved(c)
		s.publish(Change{Type: Deleted, Before: old.record(), before: old})
	}
}

// advance notes that all changes up to version are in the store.
func (s *stream) advance(version string) {
	if !s.listing && version != "" && !ident.IsNewer(s.store.version, version) {
		s.store.advance(version)
	}
}

// trouble takes in an error of the stream.
func (s *stream) trouble(err error) {
	var unreadable *kube.DecodeError
	if errors.As(err, &unreadable) {
		s.doubt(unreadable)
		s.unreadable.Add(1)
	} else {
		s.errors.Add(1)
		s.recovery.recordError()
	}
	s.report(err)
}

func (s *stream) report(err error) {
	if s.caches.options.onError != nil {
		s.caches.options.onError(s.handle, err)
	}
}

// doubt marks an object of which a version came that does not even tell its name and
// version for certain: what is kept of it is not what is there.
func (s *stream) doubt(err *kube.DecodeError) {
	slot, there := s.store.table.find(s.store.slots, kube.Key{Namespace: err.Ref.Namespace, Name: err.Ref.Name})
	if !there {
		return
	}
	e := *s.store.slots[slot]
	e.doubt = err
	s.store.swap(slot, &e)
}

func (s *stream) ref(c watch.Change) kube.Ref {
	return kube.Ref{Cluster: s.handle.Cluster, Resource: s.handle.Resource, Namespace: c.Key.Namespace, Name: c.Key.Name, UID: c.UID}
}

// dropObserved drops what the overlay has of an object, if all streams have observed it now.
func (s *stream) dropObserved(c watch.Change) {
	s.caches.dropObserved(overlay.KeyOf(s.ref(c)))
}

// publish passes c to all subscribers, and drops those that have left.
func (s *stream) publish(c Change) {
	there := s.subscriptions[:0]
	for _, sub := range s.subscriptions {
		if sub.publish(c) {
			there = append(there, sub)
		}
	}
	clear(s.subscriptions[len(there):])
	s.subscriptions = there
}

// join makes a subscriber one of a stream that runs: it is told what is there, and is one
// of all from then on.
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

// stats are the figures of the stream, users apart.
func (s *stream) stats() Stats {
	st := Stats{
		Stream: s.handle, Errors: s.errors.Load(), DecodeFailures: s.unreadable.Load(),
		Restarts: max(s.lists.Load(), 1) - 1, Dictionaries: s.dictionaries.Load(),
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	st.Synced, st.Objects = s.store.synced, s.store.table.used
	st.Bytes, st.JSON = s.store.bytes, s.store.json
	for _, c := range s.store.codings {
		st.Dictionary += int64(len(c.dictionary))
	}
	return st
}

// troubleOfIndex takes in what went wrong in an index function.
func (s *stream) troubleOfIndex(err error) {
	s.errors.Add(1)
	s.report(fmt.Errorf("%s: %w", s.handle, err))
}
