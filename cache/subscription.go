package cache

import (
	"sync"
	"sync/atomic"
)

// Subscription is one use of a stream: see [Cache.Open].
type Subscription struct {
	stream *stream
	// unhook stops the function that waits for the end of the context of Open.
	unhook func() bool
	once   sync.Once

	// leaving is true from the beginning of Close: a call under way is the last one.
	leaving atomic.Bool
	// mu is held while the subscriber is called.
	mu sync.Mutex
	// subscriber is nil once the subscription is closed. Guarded by mu.
	subscriber Subscriber
	// synced is true once the subscriber has received Synced. Guarded by mu.
	synced bool
}

// Store returns the store of the stream. It changes as long as the stream has subscriptions.
func (s *Subscription) Store() *Store { return s.stream.store }

// Close ends the subscription. It waits for a running call of the subscriber, and the subscriber
// is not called after it. The last Close of a stream stops the watch and waits for its end.
// Further calls only wait for the first one.
//
// A Subscriber must not call Close, which would wait for the Subscriber. It can cancel the
// context of [Cache.Open] instead.
func (s *Subscription) Close() {
	s.once.Do(func() {
		s.unhook()
		s.leave()
	})
}

// leave ends the subscription, without waiting for the function that watches its context.
func (s *Subscription) leave() {
	last := s.stream.cache.release(s.stream)
	s.leaving.Store(true)
	s.mu.Lock()
	s.subscriber = nil // and what it holds on to
	s.mu.Unlock()
	if last {
		s.stream.cancel()
		s.stream.running.Wait()
	}
}

// publish passes c to the subscriber. It reports whether the subscription is still open.
func (s *Subscription) publish(c Change) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving.Load() {
		return false
	}
	c.Initial = !s.synced && c.Type != Synced && c.Type != Restored
	s.synced = s.synced || c.Type == Synced
	s.subscriber(c)
	return true
}
