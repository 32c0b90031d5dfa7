package kube

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// TestLimitWrites checks that no more writes are in flight than the limit says. The writes
// do not hold up reads. A waiting write gives up with its caller.
func TestLimitWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		writing, most := 0, 0
		h := retry{timeout: 2 * time.Second, next: limitWrites(3, wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Verb.IsWrite() {
				mu.Lock()
				writing++
				most = max(most, writing)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				writing--
				mu.Unlock()
			}
			return &wire.Response{Code: 200}, nil
		}))}
		var all sync.WaitGroup
		for range 10 { // the last one waits for longer than the limit of its attempts
			all.Go(func() {
				if _, err := h.Do(t.Context(), requestFor(wire.VerbPatch)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		started := time.Now()
		if _, err := h.Do(t.Context(), requestFor(wire.VerbGet)); err != nil || time.Since(started) > 0 {
			t.Errorf("a read was held up for %s: %v", time.Since(started), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := h.Do(ctx, requestFor(wire.VerbPatch))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that waited with a deadline: %v", err)
		}
		if IsUnreachable(err) {
			t.Errorf("Bug: the caller's own end was called unreachable: %v", err)
		}
		all.Wait()
		if most != 3 {
			t.Errorf("%d writes were in flight at once, the limit is 3", most)
		}
	})
}

// Bug: a write that waited to be repeated held its place, so that a few of them blocked all
// other writes.
func TestWriteThatWaitsToBeRepeatedHoldsNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Name == "idle" {
				return &wire.Response{Code: 200}, nil
			}
			e := wire.NewError(r)
			e.Code, e.RetryAfter = http.StatusTooManyRequests, 6*time.Second
			return nil, e
		})
		h := retry{next: limitWrites(4, server), timeout: 30 * time.Second}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _, _ = h.Do(t.Context(), requestFor(wire.VerbPatch)) })
		}
		synctest.Wait()
		started := time.Now()
		if _, err := h.Do(t.Context(), requestFor(wire.VerbPatch, func(r *wire.Request) { r.Name = "idle" })); err != nil {
			t.Error(err)
		}
		if d := time.Since(started); d > 0 {
			t.Errorf("it waited %s for writes that waited themselves", d)
		}
		all.Wait()
	})
}

// All clients derived from one client share its limit, which is 64 by default.
func TestClientLimitsItsWrites(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	arrived, release := 0, make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		arrived++
		mu.Unlock()
		<-release
		_, _ = w.Write([]byte(`{}`))
	}, withTimeout(time.Minute))
	var all sync.WaitGroup
	for i := range 2 * 64 {
		each := c.WithFieldManager(string(rune('a' + i%2)))
		all.Go(func() {
			if _, err := Apply(t.Context(), each, &gadget{ObjectMeta: named("ns", "g")}); err != nil {
				t.Error(err)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		n := arrived
		mu.Unlock()
		if n == 64 || time.Now().After(deadline) {
			break
		}
	}
	time.Sleep(20 * time.Millisecond) // one more has the time to arrive
	mu.Lock()
	if arrived != 64 {
		t.Errorf("%d writes were in flight at once", arrived)
	}
	mu.Unlock()
	close(release)
	all.Wait()
}
