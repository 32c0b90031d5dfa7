package queue

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestParallel runs real workers on real time: no key is worked on twice at once, and every
// trigger is followed by a reconcile that started after it.
func TestParallel(t *testing.T) {
	const producers, consumers, triggers = 4, 8, 20_000
	keys := keys(50)
	type object struct {
		version  atomic.Int64 // raised before each trigger
		seen     atomic.Int64 // by the last reconcile that did not fail, at its start
		inFlight atomic.Int32
	}
	objects := make(map[Key]*object)
	for _, key := range keys {
		objects[key] = new(object)
	}
	q := New(nil)

	var workers sync.WaitGroup
	for range consumers {
		workers.Go(func() {
			for {
				// Some leave and come back, so that wakes are passed on.
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(200*time.Microsecond))
				item, ok := q.Get(ctx)
				over := ctx.Err() == nil && !ok
				cancel()
				if over {
					return
				}
				if !ok {
					continue
				}
				o := objects[item.Key]
				if n := o.inFlight.Add(1); n != 1 {
					t.Errorf("%d workers on %v", n, item.Key)
				}
				version := o.version.Load()
				if rand.IntN(10) == 0 {
					time.Sleep(rand.N(100 * time.Microsecond))
				}
				var outcome Next
				if rand.IntN(10) == 0 {
					outcome = Next{IsRetried: true, RetryAfter: rand.N(time.Millisecond)}
				}
				if !outcome.IsRetried {
					o.seen.Store(version)
				}
				o.inFlight.Add(-1)
				q.Done(item.Key, outcome)
			}
		})
	}

	var sources sync.WaitGroup
	for range producers {
		sources.Go(func() {
			for range triggers / producers {
				key := keys[rand.IntN(len(keys))]
				objects[key].version.Add(1)
				trigger := Trigger{Key: key, Priority: []Priority{Low, High}[rand.IntN(2)], Echo: Echo(rand.IntN(3))}
				if rand.IntN(10) == 0 {
					trigger.NotBefore = time.Now().Add(rand.N(time.Millisecond))
				}
				q.Add(trigger)
				if rand.IntN(100) == 0 {
					time.Sleep(rand.N(time.Millisecond)) // let the workers sleep too
				}
			}
		})
	}
	sources.Wait()

	deadline := time.Now().Add(time.Minute)
	for s := q.Stats(); s.Ready+s.Waiting+s.Running > 0; s = q.Stats() {
		if time.Now().After(deadline) {
			t.Fatalf("not at rest: %+v", s)
		}
		time.Sleep(time.Millisecond)
	}
	q.Shutdown()
	workers.Wait()
	for key, o := range objects {
		if o.seen.Load() != o.version.Load() {
			t.Errorf("%v: a trigger was lost: seen %d of %d", key, o.seen.Load(), o.version.Load())
		}
	}
}
