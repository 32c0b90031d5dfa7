package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// onClock runs f with a queue on a clock, and one worker that calls reconcile. No real time
// passes.
func onClock(t *testing.T, reconcile func(Work) Next, f func(t *testing.T, q *Queue, advance func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		q := New(c)
		defer c.Add("queue", q)()
		var worker sync.WaitGroup
		worker.Go(func() {
			for {
				item, ok := q.Get(t.Context())
				if !ok {
					return
				}
				q.Done(item.Key, reconcile(item))
			}
		})
		start := time.Now()
		f(t, q, func(d time.Duration) {
			t.Helper()
			if err := c.Advance(t.Context(), d, time.Second); err != nil {
				t.Fatal(err)
			}
		})
		if passed := time.Since(start); passed != 0 {
			t.Errorf("%s of real time passed", passed)
		}
		q.Shutdown()
		worker.Wait()
	})
}

// When Advance returns, all that became due has run, each at its time.
func TestAdvance(t *testing.T) {
	for name, test := range map[string]struct {
		outcome Next
		// triggers are delayed triggers of the key a, with their delays.
		triggers []time.Duration
		advance  []time.Duration
		want     string
	}{
		"requeue":                      {Next{RequeueAfter: 10 * time.Second}, nil, []time.Duration{time.Minute}, "0s 10s 20s 30s 40s 50s 1m0s"},
		"requeue in several moves":     {Next{RequeueAfter: 10 * time.Second}, nil, []time.Duration{9 * time.Second, 0, time.Second, 25 * time.Second}, "0s 10s 20s 30s"},
		"retry":                        {Next{IsRetried: true, RetryAfter: 20 * time.Second}, nil, []time.Duration{time.Minute}, "0s 20s 40s 1m0s"},
		"delayed triggers":             {Next{}, []time.Duration{time.Hour, time.Minute}, []time.Duration{time.Minute, 2 * time.Hour}, "0s 1m0s 1h0m0s"},
		"nothing is due":               {Next{RequeueAfter: time.Hour}, nil, []time.Duration{time.Minute}, "0s"},
		"a delayed trigger is not due": {Next{}, []time.Duration{time.Hour}, []time.Duration{time.Hour - time.Nanosecond}, "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			var c *clock.Clock
			var start time.Time
			var got string
			reconcile := func(Work) Next {
				if got != "" {
					got += " "
				}
				got += c.Since(start).String()
				return test.outcome
			}
			onClock(t, reconcile, func(t *testing.T, q *Queue, advance func(time.Duration)) {
				c, start = q.clock, q.clock.Now()
				q.Add(high(a))
				for _, d := range test.triggers {
					trigger := high(a)
					trigger.NotBefore = c.Now().Add(d)
					q.Add(trigger)
				}
				for _, d := range test.advance {
					advance(d)
				}
				if got != test.want {
					t.Errorf("it ran at %s, want %s", got, test.want)
				}
			})
		})
	}
}

// A requeue that a running reconcile is about to ask for counts from before the move.
func TestAdvanceWaitsForRunningKeys(t *testing.T) {
	count := 0
	reconcile := func(Work) Next {
		if count++; count == 1 {
			time.Sleep(100 * time.Millisecond)
		}
		return Next{RequeueAfter: time.Minute}
	}
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		q := New(c)
		defer c.Add("queue", q)()
		ctx, cancel := context.WithCancel(t.Context())
		var worker sync.WaitGroup
		worker.Go(func() {
			for item, ok := q.Get(ctx); ok; item, ok = q.Get(ctx) {
				q.Done(item.Key, reconcile(item))
			}
		})
		q.Add(high(a))
		synctest.Wait()
		if err := c.Advance(ctx, time.Minute, time.Second); err != nil || count != 2 {
			t.Errorf("%d reconciles (%v), want the requeue too", count, err)
		}
		cancel()
		worker.Wait()
		q.Shutdown()
	})
}

// A clock that is moved while triggers come from everywhere loses no key, and runs none twice at
// once.
func TestAdvanceUnderLoad(t *testing.T) {
	c := clock.New()
	q := New(c)
	defer c.Add("queue", q)()
	var mu sync.Mutex
	running := make(map[Key]bool)
	runs := make(map[Key]int)
	var workers, sources sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for item, ok := q.Get(t.Context()); ok; item, ok = q.Get(t.Context()) {
				mu.Lock()
				if running[item.Key] {
					t.Errorf("%v runs twice at once", item.Key)
				}
				running[item.Key] = true
				runs[item.Key]++
				mu.Unlock()
				mu.Lock()
				running[item.Key] = false
				mu.Unlock()
				q.Done(item.Key, Next{RequeueAfter: time.Minute})
			}
		})
	}
	const keys = 20
	for i := range keys {
		sources.Go(func() {
			for range 50 {
				q.Add(Trigger{Key: Key{Name: fmt.Sprint(i)}, Priority: High, NotBefore: c.Now().Add(time.Second)})
				q.Add(Trigger{Key: Key{Name: fmt.Sprint(i)}})
			}
		})
	}
	const moves = 100
	for range moves {
		if err := c.Advance(t.Context(), time.Minute, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	sources.Wait()
	if err := c.Advance(t.Context(), time.Minute, time.Minute); err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if n := runs[Key{Name: fmt.Sprint(i)}]; n < 1 {
			t.Errorf("the key %d ran %d times", i, n)
		}
	}
	q.Shutdown()
	workers.Wait()
}

func TestAQueueOnAClockAllocatesNothing(t *testing.T) {
	c := clock.New()
	q := New(c)
	defer c.Add("queue", q)()
	allocs := testing.AllocsPerRun(100, func() {
		q.Add(Trigger{Key: a, Priority: High})
		item, _ := q.Get(t.Context())
		q.Done(item.Key, Next{RequeueAfter: time.Hour})
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
