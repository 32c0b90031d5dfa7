package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/cache/internal/database"
	"github.com/yare-go/yare/internal/cache/internal/progress"
	"github.com/yare-go/yare/internal/cache/internal/restoration"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// followedStream follows one wire.Stream, keeps its store and publishes its changes, in one goroutine. Each
// subscriber that joins late has one more goroutine, until it has caught up.
//
//	follow.Change          from package follow: a key, a version, and the JSON of the server
//	    │ updater.apply
//	database.Item          the JSON, reduced to the fields of a projection
//	    │ database.Writer
//	database.PackedObject  the decoded fields and the compressed JSON, in the store
//	    │ recordOf
//	cache.Record           the decoded fields
//	    │
//	cache.Change           the records before and after
//	    │ publisher.update
//	cache.Subscriber       in package controller
//
// The updater also records each change in the progress of the stream, in the recorder of restorations, and in the
// overlay. The overlay drops the entries that all stores have observed.
type followedStream struct {
	shared
	id        wire.Stream
	store     *Store
	updater   *updater
	published publisher
	detector  *restoration.Detector
	// relister asks for a fresh list of the stream, or for a probe.
	relister follow.Relister
	recovery progress.Recovery
	// termList is used while the stream is behind the term.
	termList termList
	counts   *counts
	cancel   context.CancelFunc
	// subscriptionCount is the number of open subscriptions. The mutex of the registry guards it.
	subscriptionCount int
	// running counts the goroutines of the stream.
	running sync.WaitGroup
}

func newFollowedStream(common shared, id wire.Stream, cancel context.CancelFunc) *followedStream {
	s := &followedStream{shared: common, id: id, counts: &counts{}, cancel: cancel}
	objectDatabase, writer := database.New(database.Options{
		OneNamespace: id.Namespace != "" || id.Resource.ClusterScoped,
		// Sizes must disclose nothing of a Secret. The annotations can hold the whole Secret, so
		// streams of metadata are included.
		Plain:       id.Resource.IsSecret(),
		Report:      func(err error) { s.report(s.objectError(err)) },
		ReportWrite: func(err error) { s.updater.recordFailure(s.objectError(err)) },
	})
	streamProgress := new(progress.Progress)
	s.store = &Store{stream: id, database: objectDatabase, progress: streamProgress}
	detector, recorder := common.restorations.Open(id, &s.relister)
	s.detector = detector
	s.updater = newUpdater(s.store, common.overlay, writer, streamProgress, recorder, s.counts)
	return s
}

// objectError names the stream in an error of one object: of an index function, or of the compression of the object.
func (s *followedStream) objectError(err error) error { return fmt.Errorf("%s: %w", s.id, err) }

// follow lists and watches the stream until ctx ends. It is the goroutine of the stream.
func (s *followedStream) follow(ctx context.Context) {
	defer s.restorations.Close(s.detector)
	defer s.updater.progress.RecordWatch(false)
	for change, err := range follow.Changes(ctx, s.handler, s.id, follow.WithRelister(&s.relister)) {
		if ctx.Err() != nil {
			return
		}
		isRecovered := false
		if err != nil {
			s.applyError(err)
		} else {
			s.apply(change)
			isRecovered = s.recovery.RecordChange(change.Type)
		}
		s.reportFailures()
		if result := s.updater.takeListResult(); result.IsDoubtSettled {
			s.publishDoubtSettled(result.IsRestoration)
		}
		if isRecovered && s.options.onRecovered != nil {
			s.options.onRecovered(s.id)
		}
	}
}

// apply applies one change to the store, and publishes it.
func (s *followedStream) apply(c follow.Change) {
	s.counts.lastEvent.Store(time.Now().UnixNano())
	s.published.update(s.updater, c)
	isMark := c.Type == follow.ChangeListed || c.Type == follow.ChangeBookmark
	s.updater.writer.Maintain(isMark)
	if isMark && !s.isBehindTerm() {
		s.termList.forget()
	}
}

// isBehindTerm reports whether the store may lack writes of a former leader: see [Subscription.IsBehindTerm].
func (s *followedStream) isBehindTerm() bool {
	if s.options.termVersion == nil || s.id.Cluster != "" || !s.restorations.IsStoredWithLeases(s.id) {
		return false
	}
	version := s.options.termVersion()
	return version != "" && !ident.HasReached(s.store.Version(), version)
}

// applyError applies an error of the stream.
func (s *followedStream) applyError(err error) {
	if decodeErr, ok := errors.AsType[*wire.DecodeError](err); ok {
		s.updater.markUndecodable(decodeErr)
	} else {
		s.counts.errors.Add(1)
		s.recovery.RecordError()
	}
	if found, ok := errors.AsType[watchEndError](err); ok && found.IsRestoration() {
		s.updater.restoration.RecordLoss()
	}
	s.updater.recordFailure(err)
}

// watchEndError is an error of package follow that may be due to a restored backup.
type watchEndError interface {
	error
	// IsRestoration reports whether the watch has found that the server was restored.
	IsRestoration() bool
}

// publishDoubtSettled publishes that the store is no longer in doubt. After a restoration, the subscribers of all
// streams that the restoration concerns receive the change, because they may have read the store. The caller must hold
// no lock.
func (s *followedStream) publishDoubtSettled(isRestoration bool) {
	for _, other := range s.streams.snapshot() {
		if other == s || isRestoration && s.restorations.AreRestoredTogether(s.id, other.id) && other.store.IsSynced() {
			other.published.publish(Change{Type: DoubtSettled})
		}
	}
}

// checkAnswer compares the object of an answer, and what the store showed before the request. It reports a
// contradiction. The caller must hold no lock.
func (s *followedStream) checkAnswer(before restoration.ShownState, k kube.Key, answer ident.Metadata) {
	if err := s.detector.CheckAnswer(before, answer.Version(), k, string(answer.Labels)); err != nil {
		s.counts.errors.Add(1)
		s.report(&RestorationError{Err: err})
	}
}

// reportFailures reports the errors of the last change. The caller must hold no lock, because the author's
// function may use the cache.
func (s *followedStream) reportFailures() {
	for _, err := range s.updater.takeFailures() {
		s.report(err)
	}
}

func (s *followedStream) report(err error) {
	if s.options.onError != nil {
		s.options.onError(s.id, err)
	}
}

// stats returns the Stats of the stream, without the number of subscribers.
func (s *followedStream) stats() Stats {
	sizes := s.store.database.Stats()
	return Stats{
		Stream: s.id, Synced: s.store.IsSynced(), Unlisted: s.store.isUnlisted.Load() && !s.store.IsSynced(),
		Watching:  s.store.isWatching() || s.store.IsUnserved(),
		LastEvent: s.counts.lastEventTime(), Objects: sizes.Objects, Bytes: sizes.Bytes,
		JSON:       sizes.JSON,
		Dictionary: sizes.Dictionary, Dictionaries: sizes.Dictionaries, Restarts: max(s.counts.lists.Load(), 1) - 1,
		Errors: s.counts.errors.Load(), DecodeFailures: s.counts.decodeFailures.Load(),
	}
}
