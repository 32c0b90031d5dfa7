package cache

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/cache/internal/restoration"
	"github.com/yare-go/yare/kube"
)

// streams holds the open streams of a Cache. All methods can be used concurrently.
type streams struct {
	mu sync.RWMutex
	// open holds the streams that have a subscription, in the order in which they were opened.
	open []*stream
	// users holds the number of open subscriptions of each of these streams.
	users    map[*stream]int
	isClosed bool
	// running counts the goroutines of all streams, and the goroutines that end subscriptions
	// whose context has ended. None is added once isClosed is true.
	running sync.WaitGroup
}

func newStreams() *streams { return &streams{users: make(map[*stream]int)} }

// subscribe adds sub to the stream id. If the stream is not open, begin makes it.
func (all *streams) subscribe(ctx context.Context, id kube.Stream, sub *Subscription, begin func(context.CancelFunc) *stream) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.isClosed {
		return fmt.Errorf("open %s: %w", id, ErrClosed)
	}
	if i := slices.IndexFunc(all.open, func(s *stream) bool { return s.id == id }); i >= 0 {
		s := all.open[i]
		sub.stream = s
		all.startLocked(s, func() { s.published.join(sub, s.store) })
	} else {
		following, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s := begin(cancel)
		s.published.subscriptions = []*Subscription{sub}
		sub.stream = s
		all.open = append(all.open, s)
		all.startLocked(s, func() { s.follow(following) })
	}
	all.users[sub.stream]++
	sub.unhook = context.AfterFunc(ctx, func() { all.expire(sub) })
	return nil
}

// startLocked runs a goroutine of a stream. all must not be closed.
func (all *streams) startLocked(s *stream, run func()) {
	all.running.Add(1)
	s.running.Go(func() {
		defer all.running.Done()
		run()
	})
}

// expire closes a subscription whose context has ended.
func (all *streams) expire(sub *Subscription) {
	all.mu.Lock()
	isClosed := all.isClosed
	if !isClosed {
		all.running.Add(1)
	}
	all.mu.Unlock()
	if isClosed {
		return
	}
	defer all.running.Done()
	sub.once.Do(sub.leave)
}

// release removes a subscription from a stream. It reports whether the subscription was the last
// one. Then the stream is removed too.
func (all *streams) release(s *stream) (isLast bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.users[s]--; all.users[s] > 0 {
		return false
	}
	delete(all.users, s)
	all.open = slices.DeleteFunc(slices.Clone(all.open), func(other *stream) bool { return other == s })
	return true
}

// snapshot returns the streams that are open now. The slice must not be changed.
func (all *streams) snapshot() []*stream {
	all.mu.RLock()
	defer all.mu.RUnlock()
	return all.open[:len(all.open):len(all.open)]
}

// thatMayHold returns the streams that have the object of k, unless a selector leaves it out.
func (all *streams) thatMayHold(k overlay.Key) iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, s := range all.snapshot() {
			if s.store.mayHold(k) && !yield(s) {
				return
			}
		}
	}
}

// stats returns the Stats of all streams, in the order in which they were opened.
func (all *streams) stats() []Stats {
	all.mu.RLock()
	defer all.mu.RUnlock()
	stats := make([]Stats, 0, len(all.open))
	for _, s := range all.open {
		each := s.stats()
		each.Subscribers = all.users[s]
		stats = append(stats, each)
	}
	return stats
}

// close ends all streams, and waits for their goroutines.
func (all *streams) close() {
	all.mu.Lock()
	all.isClosed = true
	for _, s := range all.open {
		s.cancel()
	}
	all.open = nil
	all.mu.Unlock()
	all.running.Wait()
}

// publishRestored publishes that a restoration was found in a cluster, or that a store has
// recovered from a restoration. The caller must hold no lock.
func (all *streams) publishRestored(cluster string) {
	for _, s := range all.snapshot() {
		if s.id.Cluster == cluster && s.store.Synced() {
			s.published.publish(Change{Type: Restored})
		}
	}
}

// storeState is what the store of a stream showed of an object before a request.
type storeState struct {
	detector *restoration.Detector
	before   restoration.StoreState
}

// storeStates returns what the stores show of an object.
func (all *streams) storeStates(k overlay.Key) (states []storeState) {
	for s := range all.thatMayHold(k) {
		states = append(states, storeState{s.detector, s.store.state(k.In())})
	}
	return states
}

// checkAnswer compares the object of an answer, and what stores showed before the request.
func checkAnswer(states []storeState, answer answerMetadata) {
	for _, s := range states {
		s.detector.CheckAnswer(s.before, answer.version(), string(answer.Labels))
	}
}
