package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/cache/internal/progress"
	"github.com/yare-go/yare/cache/internal/store"
	"github.com/yare-go/yare/internal/jsonscan/projection"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// stream follows one kube.Stream, keeps its store and publishes its changes, in one goroutine. Each
// subscriber that joins late has one more goroutine, until it has caught up.
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
	// fields are the fields that the objects are reduced to. It is nil if the stream is not one of
	// a projection.
	fields *projection.Fields
	// running counts the goroutines of the stream.
	running sync.WaitGroup

	// deliver is held while the store changes and the change is published, and while a subscriber
	// receives what the store holds: so each receives every change once, either way.
	deliver sync.Mutex
	// subscriptions holds the subscriptions that receive changes. Guarded by deliver.
	subscriptions []*Subscription
	// writer writes to store, and recorder to its progress. Guarded by deliver.
	writer   *store.Writer
	recorder *progress.Recorder
	// listing is true from the beginning of a list to its end. The versions of the objects in
	// between are in no order, and do not advance the store. Guarded by deliver.
	listing bool
	// listBegan is when the list began, and listPast is the past of the Cache at that time.
	listBegan overlay.Tick
	listPast  uint64
	// listContradictions is the number of contradictions when the list began.
	listContradictions uint64
	contradictionMu    sync.Mutex
	contradiction      contradiction
	// expected are versions that the stream has to show.
	expected expectedVersions
	// lostSince is empty, or the version that the store had before its watch passed an expected
	// version. Guarded by deliver.
	lostSince string
	// watchOpened is when the last watch was opened. Guarded by deliver.
	watchOpened time.Time
	// past is the past that the store is of: see Cache.past.
	past atomic.Uint64
	// recovery, failed and restored belong to the goroutine of the stream. failed holds the errors
	// that it reports once it no longer holds deliver. restored is true if it then reports a
	// restoration.
	recovery progress.Recovery
	failed   []error
	restored bool
	// projected is a buffer of the writer for an object that is reduced to fields.
	projected []byte

	lists, errors, unreadable atomic.Uint64
}

// Stats are the figures of one stream.
type Stats struct {
	Stream kube.Stream
	// Synced reports whether the stream has been listed.
	Synced bool
	// Subscribers is the number of subscriptions that share the stream.
	Subscribers int
	// Objects is the number of objects in the store.
	Objects int
	// Bytes is the size of the objects' contents in memory, compressed, and JSON is the size that
	// the server sent. Both are in bytes, without records and indexes.
	Bytes, JSON int64
	// Dictionary is the size of the dictionaries in use, in bytes.
	Dictionary int64
	// Dictionaries counts the dictionaries that were made so far.
	Dictionaries uint64
	// Restarts counts the lists after the first: each time a watch could not be resumed.
	Restarts uint64
	// Errors counts the errors of the stream, without the errors that concern single objects.
	Errors uint64
	// DecodeFailures counts the versions of objects whose metadata could not be read.
	DecodeFailures uint64
}

func newStream(c *Cache, id kube.Stream, cancel context.CancelFunc) *stream {
	s := &stream{cache: c, id: id, cancel: cancel}
	objects, writer := store.New(store.Options{
		OneNamespace: id.Namespace != "" || id.Resource.ClusterScoped,
		// Sizes must disclose nothing of a Secret. The annotations can hold the whole Secret, so
		// streams of metadata are included.
		Plain:       id.Resource.IsSecret(),
		Report:      func(err error) { s.report(s.indexError(err)) },
		ReportWrite: func(err error) { s.failed = append(s.failed, s.indexError(err)) },
	})
	shown, recorder := progress.New()
	s.store = &Store{stream: id, objects: objects, progress: shown}
	s.writer, s.recorder = writer, recorder
	if fields, ok := id.Representation.ProjectedFields(); ok {
		s.fields = projection.Parse(fields)
	}
	return s
}

// indexError counts an error of an index function, and reports it with the stream.
func (s *stream) indexError(err error) error {
	s.errors.Add(1)
	return fmt.Errorf("%s: %w", s.id, err)
}

// follow lists and watches the stream until ctx ends. It is the goroutine of the stream.
func (s *stream) follow(ctx context.Context) {
	defer s.recorder.RecordWatch(false)
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
			recovered = s.recovery.RecordChange(change.Type)
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
		s.advance(c.ResourceVersion, kube.Key{})
		s.checkOverdue()
	case watch.ChangeWatchOpened:
		s.watchOpened = time.Now()
		s.recorder.RecordWatch(true)
	case watch.ChangeWatchEnded:
		s.checkOverdue()
		s.recorder.RecordWatch(false)
		s.cache.overlay.Distrust(s.collection())
	}
	s.writer.Maintain(resting)
}

func (s *stream) upsert(c watch.Change) {
	object := c.Object
	if s.fields != nil {
		var err error
		if s.projected, err = s.fields.AppendObject(s.projected[:0], c.Object); err == nil {
			object = s.projected
		}
	}
	item := store.NewItem(c.Key, c.UID, c.ResourceVersion, object)
	if s.writer.Has(item) {
		s.advance(c.ResourceVersion, c.Key)
		return
	}
	missed := s.listing && s.hasMissed(c)
	// Whoever finds the change in this store must not miss it in another one.
	s.recorder.RecordChange(c.Key.Namespace, c.ResourceVersion, s.listing)
	before, after, err := s.writer.Put(item)
	s.advance(c.ResourceVersion, c.Key)
	if err != nil {
		// The content is kept all the same: the older one would be wrong for certain.
		s.unreadable.Add(1)
		s.failed = append(s.failed, &kube.DecodeError{Ref: s.ref(c), ResourceVersion: c.ResourceVersion, Err: err})
	}
	var replaced []*store.Entry
	if s.listing {
		replaced = s.takeReplaced(c, before)
	}
	s.cache.dropObserved(overlay.KeyOf(s.ref(c)))
	change := Change{Type: Added, After: recordOf(after), Missed: missed, after: after}
	if before != nil && !before.IsSameObject(after) {
		s.publish(Change{Type: Deleted, Before: recordOf(before), before: before})
	} else if before != nil {
		change.Type, change.Before, change.before = Modified, recordOf(before), before
	}
	for _, e := range replaced {
		s.publish(Change{Type: Deleted, Before: recordOf(e), before: e})
	}
	s.publish(change)
}

func (s *stream) remove(c watch.Change) {
	version := c.ResourceVersion
	if c.Object == nil { // the deletion was not observed: the version is that of the last state
		version = ""
	}
	if s.store.objects.Get(c.Key) == nil {
		s.advance(version, c.Key)
		return
	}
	s.recorder.RecordChange(c.Key.Namespace, version, s.listing)
	before := s.writer.Remove(c.Key)
	s.advance(version, c.Key)
	s.cache.dropObserved(overlay.KeyOf(s.ref(c)))
	s.publish(Change{Type: Deleted, Before: recordOf(before), before: before})
}

// applyError applies an error of the stream.
func (s *stream) applyError(err error) {
	if unreadable, ok := errors.AsType[*kube.DecodeError](err); ok {
		s.writer.MarkUnreadable(unreadable)
		s.forgetExpected() // the change that could not be read may be an expected one
		s.unreadable.Add(1)
	} else {
		s.errors.Add(1)
		s.recovery.RecordError()
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

// publish passes c to all subscribers, and drops the subscriptions that have been closed.
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
	if !s.store.Synced() || sub.publish(Change{Type: Synced}) {
		s.subscriptions = append(s.subscriptions, sub)
	}
}

// stats returns the figures of the stream, without the number of users.
func (s *stream) stats() Stats {
	o := s.store.objects.Stats()
	return Stats{
		Stream: s.id, Synced: s.store.Synced(), Objects: o.Objects, Bytes: o.Bytes, JSON: o.JSON,
		Dictionary: o.Dictionary, Dictionaries: o.Dictionaries, Restarts: max(s.lists.Load(), 1) - 1,
		Errors: s.errors.Load(), DecodeFailures: s.unreadable.Load(),
	}
}
