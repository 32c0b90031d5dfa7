package kube_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/kube"
)

// No more writes are in flight than the limit says, reads are not held up by them, and one
// that waits gives up with its caller.
func TestLimitWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		writing, most := 0, 0
		h := kube.LimitWrites(3)(kube.HandlerFunc(func(_ context.Context, r *kube.Request) (*kube.Response, error) {
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
			return &kube.Response{Code: 200}, nil
		}))
		var done sync.WaitGroup
		for range 10 {
			done.Go(func() {
				if _, err := h.Do(t.Context(), &kube.Request{Verb: kube.VerbPatch}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		started := time.Now()
		if _, err := h.Do(t.Context(), &kube.Request{Verb: kube.VerbGet}); err != nil || time.Since(started) > 0 {
			t.Errorf("a read was held up for %s: %v", time.Since(started), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := h.Do(ctx, &kube.Request{Verb: kube.VerbPatch}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that waited with a deadline: %v", err)
		}
		done.Wait()
		if most != 3 {
			t.Errorf("%d writes were in flight at once, the limit is 3", most)
		}
	})
}
