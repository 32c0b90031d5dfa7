package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/kube"
)

// Subscription is one use of a stream: see [Cache.Open].
type Subscription struct {
	streams  *registry
	followed *followedStream
	// stopWaiting stops the function that waits for the end of the context of Open.
	stopWaiting func() bool
	once        sync.Once

	// isClosing is true from the beginning of Close: a call under way is the last one.
	isClosing atomic.Bool

	// mu is held while the subscriber is called, by one goroutine at a time.
	mu sync.Mutex
	// subscriber is nil once the subscription is closed.
	subscriber Subscriber
	// isSynced is true once the subscriber has received Synced.
	isSynced bool
}

// Store returns the store of the stream. It changes as long as the stream has subscriptions.
func (s *Subscription) Store() *Store { return s.followed.store }

// DoubtedSince returns since when the store may show what a restoration has undone, and waits for a list. Reads are
// live until then. [DoubtSettled] is published at the end of the doubt. DoubtedSince returns false if the store is not
// in doubt.
func (s *Subscription) DoubtedSince() (time.Time, bool) { return s.followed.detector.DoubtedSince() }

// IsBehindTerm reports whether the store may lack writes of a former leader, which were carried out before the term of
// this process: see [TermVersion]. It is for the kinds of Kubernetes and of the program in the home cluster. For all
// other kinds it returns false, because their resource versions may come from another server than the version of the
// term.
//
// Example: the former leader removes an object at version 40 and releases its Lease at 41, which is the version of the
// term. The stream is behind the term at version 39. Its next bookmark has the version 44, and from then on it is not
// behind.
func (s *Subscription) IsBehindTerm() bool { return s.followed.isBehindTerm() }

// ConfirmTerm returns whether the store shows all writes of former leaders to the object of k. It returns false for an
// object that the store does not have while the stream is behind the term. If necessary it lists the metadata of the
// objects, once in a term (see termList). ConfirmTerm waits for the list, until ctx ends.
func (s *Subscription) ConfirmTerm(ctx context.Context, k kube.Key) (isConfirmed bool) {
	f := s.followed
	for f.isBehindTerm() {
		o, isStored := f.store.Get(k)
		if !isStored {
			return false
		}
		isListed, shouldRun, pageAdded := f.termList.confirm(listedVersion{o.UID, o.ResourceVersion})
		switch {
		case isListed:
			return true
		case shouldRun:
			f.termList.run(ctx, f.handler, f.id, f.isBehindTerm)
			continue
		case pageAdded == nil:
			return false
		}
		select {
		case <-pageAdded:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Close ends the subscription. It waits for a running call of the subscriber, and the subscriber
// is not called after it. The last Close of a stream stops the watch and waits for its end.
// Further calls only wait for the first one.
//
// A Subscriber must not call Close, which would wait for the Subscriber. It can cancel the
// context of [Cache.Open] instead.
func (s *Subscription) Close() {
	s.once.Do(func() {
		s.stopWaiting()
		s.leave()
	})
}

// leave ends the subscription, without waiting for the function that watches its context.
func (s *Subscription) leave() {
	isLast := s.streams.release(s.followed)
	s.isClosing.Store(true)
	s.mu.Lock()        // waits for a running call of the subscriber
	s.subscriber = nil // frees what it refers to
	s.mu.Unlock()
	if isLast {
		s.followed.cancel()
		s.followed.running.Wait()
	}
}

// publish passes c to the subscriber, unless the subscription is closing. It reports whether it did so.
func (s *Subscription) publish(c Change) (isOpen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing.Load() {
		return false
	}
	c.Initial = !s.isSynced && c.Type != Synced && c.Type != Unlisted && c.Type != DoubtSettled
	s.isSynced = s.isSynced || c.Type == Synced
	s.subscriber(c)
	return true
}
