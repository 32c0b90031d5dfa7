package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
)

// ErrClosed is the error of [Cache.Open] after [Cache.Close].
var ErrClosed = errors.New("the cache is closed")

// Cache holds the streams of a program and their stores. All methods can be used
// concurrently.
type Cache struct {
	handler kube.Handler
	options options
	overlay *overlay.Overlay
	// past counts the restorations of a server from a backup that streams have found. The store
	// of a stream with a lower count shows what the restoration has undone.
	past atomic.Uint64

	mu sync.RWMutex
	// streams holds the streams that have a subscription, in the order in which they were opened.
	streams []*stream
	closed  bool
	// running counts the goroutines of all streams, and the goroutines that end subscriptions
	// whose context has ended. None is added once closed is true.
	running sync.WaitGroup
}

// New returns a Cache whose lists and watches go to h. Nothing is followed before the first
// [Cache.Open].
func New(h kube.Handler, o ...Option) *Cache {
	c := &Cache{handler: h, overlay: overlay.New()}
	for _, option := range o {
		option(&c.options)
	}
	return c
}

// Open subscribes to the stream id. If no subscription to the stream is open, it is listed and
// watched from now on; otherwise they share its watch and its store.
//
// The subscriber receives all objects as Added, then Synced, and then every change. It receives
// each of them once, in the order of the stream, whenever it joins. Open does not wait for any
// of them. The subscription ends with [Subscription.Close], or soon after ctx ends. The requests
// of a stream have the values of the ctx of its first subscription.
//
// The contents of Secrets are in memory, uncompressed, while a stream of Secrets is open that is
// not limited to metadata.
//
// Open returns only [ErrClosed]. An error of the stream is reported to [OnError], and the stream
// goes on.
func (c *Cache) Open(ctx context.Context, id kube.Stream, subscriber Subscriber) (*Subscription, error) {
	sub := &Subscription{subscriber: subscriber}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("open %s: %w", id, ErrClosed)
	}
	if i := slices.IndexFunc(c.streams, func(s *stream) bool { return s.id == id }); i >= 0 {
		s := c.streams[i]
		sub.stream = s
		c.startLocked(s, func() { s.join(sub) })
	} else {
		sub.stream = c.beginLocked(ctx, id, sub)
	}
	sub.stream.users++
	sub.unhook = context.AfterFunc(ctx, func() { c.expire(sub) })
	return sub, nil
}

// beginLocked starts a stream with its first subscriber.
func (c *Cache) beginLocked(ctx context.Context, id kube.Stream, first *Subscription) *stream {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := newStream(c, id, cancel)
	s.subscriptions = []*Subscription{first}
	c.streams = append(c.streams, s)
	c.startLocked(s, func() { s.follow(ctx) })
	return s
}

// startLocked runs a goroutine of a stream. c must not be closed.
func (c *Cache) startLocked(s *stream, run func()) {
	c.running.Add(1)
	s.running.Go(func() {
		defer c.running.Done()
		run()
	})
}

// expire closes a subscription whose context has ended.
func (c *Cache) expire(sub *Subscription) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.running.Add(1)
	}
	c.mu.Unlock()
	if closed {
		return
	}
	defer c.running.Done()
	sub.once.Do(sub.leave)
}

// release removes a subscription from a stream. It reports whether the subscription was the last
// one; then the stream is removed too.
func (c *Cache) release(s *stream) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users--; s.users > 0 {
		return false
	}
	c.streams = slices.DeleteFunc(slices.Clone(c.streams), func(other *stream) bool { return other == s })
	return true
}

// isSameResource reports whether two resources have the same URL. A store serves reads in its own version only.
func isSameResource(a, b kube.Resource) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Plural == b.Plural
}

// snapshot returns the streams as they are now. The slice must not be changed.
func (c *Cache) snapshot() []*stream {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.streams[:len(c.streams):len(c.streams)]
}

// Stats returns the figures of all streams, in the order in which they were opened.
func (c *Cache) Stats() []Stats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]Stats, 0, len(c.streams))
	for _, s := range c.streams {
		st := s.stats()
		st.Subscribers = s.users
		all = append(all, st)
	}
	return all
}

// Close ends all streams and waits for their goroutines. No subscriber is called after it.
// A Subscriber must not call it.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, s := range c.streams {
		s.cancel()
	}
	c.streams = nil
	c.mu.Unlock()
	c.running.Wait()
}
