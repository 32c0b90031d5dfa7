package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A woken worker whose context ends at once must pass the wake-up on.
func TestWorkIsNotLostWithTheWorkerThatStops(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		got := make(chan string, 2)
		get := func(ctx context.Context, name string) {
			if _, ok := q.Get(ctx); ok {
				got <- name
			}
		}
		go get(t.Context(), "stays")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go get(ctx, "stops") // the last to sleep is the first to be woken
		synctest.Wait()

		// What Add does, but in the moment between the end of the context and what the
		// worker makes of it.
		q.mu.Lock()
		cancel()
		now := q.tick()
		q.reschedule(q.table.add(q.table.find(&a), a), schedule{due: now}, now)
		q.mu.Unlock()
		synctest.Wait()
		select {
		case name := <-got:
			if name != "stays" {
				t.Errorf("work for the worker that %s", name)
			}
		default:
			t.Error("there is work, and a worker, but nobody works")
		}

		// The next to sleep in its place is woken like any other.
		for _, key := range []Key{b, c} {
			go get(t.Context(), "new")
			synctest.Wait()
			q.Add(high(key))
			synctest.Wait()
			if len(got) != 1 {
				t.Fatal("nobody woke up")
			}
			<-got
		}
	})
}

func TestAWorkerWakesUpForWhateverBecomesReady(t *testing.T) {
	for name, ready := range map[string]func(q *Queue){
		"a High trigger": func(q *Queue) { q.Add(high(b)) },
		"a Low trigger":  func(q *Queue) { q.Add(low(b)) },
		"a due trigger":  func(q *Queue) { q.Add(in(time.Second, low(b))) },
		"a requeue":      func(q *Queue) { q.Done(a, Next{RequeueAfter: time.Second}) },
		"a retry":        func(q *Queue) { q.Done(a, Next{IsRetried: true, RetryAfter: time.Second}) },
		"a Low trigger of the time of the work": func(q *Queue) {
			q.Add(low(a))
			q.Done(a, Next{})
		},
		"a wait that becomes shorter": func(q *Queue) {
			q.Done(a, Next{RequeueAfter: time.Hour})
			q.Add(in(time.Second, high(a)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				q.Add(high(a))
				mustGet(t, q, a)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := make(chan bool)
				go func() {
					_, ok := q.Get(ctx)
					got <- ok
				}()
				synctest.Wait()
				ready(q)
				if !<-got {
					t.Error("nobody woke up")
				}
			})
		})
	}
}
