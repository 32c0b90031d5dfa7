package cache

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/cache/internal/restoration"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// registry holds the open streams of a Cache. All methods can be used concurrently.
type registry struct {
	mu sync.RWMutex
	// open holds the streams with a subscription, in the order in which they were opened.
	open     []*followedStream
	isClosed bool
	// running counts the goroutines of all streams, and the goroutines that end a subscription after the end
	// of its context. None is added once isClosed is true.
	running sync.WaitGroup
}

// subscribe adds sub to the stream id. If the stream is not open, begin makes it.
func (r *registry) subscribe(
	ctx context.Context, id wire.Stream, sub *Subscription, begin func(context.CancelFunc) *followedStream,
) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed {
		return fmt.Errorf("open %s: %w", id, ErrClosed)
	}
	if i := slices.IndexFunc(r.open, func(s *followedStream) bool { return s.id == id }); i >= 0 {
		s := r.open[i]
		sub.followed = s
		r.startLocked(s, func() { s.published.join(sub, s.store) })
	} else {
		following, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s := begin(cancel)
		s.published.subscriptions = []*Subscription{sub}
		sub.followed = s
		r.open = append(r.open, s)
		r.startLocked(s, func() { s.follow(following) })
	}
	sub.followed.subscriptionCount++
	sub.stopWaiting = context.AfterFunc(ctx, func() { r.expire(sub) })
	return nil
}

// startLocked runs a goroutine of a stream. r must not be closed.
func (r *registry) startLocked(s *followedStream, run func()) {
	r.running.Add(1)
	s.running.Go(func() {
		defer r.running.Done()
		run()
	})
}

// expire closes a subscription whose context has ended.
func (r *registry) expire(sub *Subscription) {
	r.mu.Lock()
	isClosed := r.isClosed
	if !isClosed {
		r.running.Add(1)
	}
	r.mu.Unlock()
	if isClosed {
		return
	}
	defer r.running.Done()
	sub.once.Do(sub.leave)
}

// release removes a subscription from a stream. It reports whether the subscription was the last
// one. Then the stream is removed too.
func (r *registry) release(s *followedStream) (isLast bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.subscriptionCount--; s.subscriptionCount > 0 {
		return false
	}
	r.open = slices.DeleteFunc(slices.Clone(r.open), func(other *followedStream) bool { return other == s })
	return true
}

// snapshot returns the streams that are open now. The slice must not be changed.
func (r *registry) snapshot() []*followedStream {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.open[:len(r.open):len(r.open)]
}

// thatMayHold returns the streams that have the object of k, unless a selector leaves it out.
func (r *registry) thatMayHold(k overlay.Key) iter.Seq[*followedStream] {
	return func(yield func(*followedStream) bool) {
		for _, s := range r.snapshot() {
			if s.store.mayHold(k) && !yield(s) {
				return
			}
		}
	}
}

// stats returns the Stats of all streams, in the order in which they were opened.
func (r *registry) stats() []Stats {
	r.mu.RLock()
	defer r.mu.RUnlock()
	stats := make([]Stats, 0, len(r.open))
	for _, s := range r.open {
		each := s.stats()
		each.Subscribers = s.subscriptionCount
		stats = append(stats, each)
	}
	return stats
}

// close ends all streams, and waits for their goroutines.
func (r *registry) close() {
	r.mu.Lock()
	r.isClosed = true
	for _, s := range r.open {
		s.cancel()
	}
	r.open = nil
	r.mu.Unlock()
	r.running.Wait()
}

// shownByStream is a stream, and what its store showed of an object before a request.
type shownByStream struct {
	followed *followedStream
	shown    restoration.ShownState
}

// shownStates returns what the stores show of an object.
func (r *registry) shownStates(k overlay.Key) (shown []shownByStream) {
	for s := range r.thatMayHold(k) {
		settled := s.detector.SettledCount() // before the state, which a list may replace meanwhile
		state := s.store.shown(k.ObjectKey())
		state.SettledCount = settled
		shown = append(shown, shownByStream{s, state})
	}
	return shown
}

// checkAnswer compares the object of an answer, and what stores showed before the request.
func checkAnswer(shown []shownByStream, k overlay.Key, answer ident.Metadata) {
	for _, s := range shown {
		s.followed.checkAnswer(s.shown, k.ObjectKey(), answer)
	}
}
