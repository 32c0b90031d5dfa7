package explore

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// More runs are made at a time while the processors are idle, and fewer while they are busy.
func TestRunLimiterFollowsTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := newRunLimiter(0)
		var running, load atomic.Int64
		go l.adjustToLoad(ctx, func() (float64, bool) { return float64(load.Load()) / 100, true })
		for range 2 * l.max {
			go func() {
				for l.acquire(ctx) {
					running.Add(1)
					_ = clock.SleepReal(ctx, 100*time.Millisecond)
					running.Add(-1)
					l.release()
				}
			}()
		}
		for _, at := range []struct {
			load int64
			want int
		}{{10, l.max}, {100, l.min}, {85, l.min}, {20, l.max}, {85, l.max}} {
			load.Store(at.load)
			time.Sleep(2*time.Duration(l.max)*adjustInterval + 50*time.Millisecond)
			synctest.Wait()
			if got := running.Load(); got != int64(at.want) {
				t.Errorf("at a load of %d %%, %d runs are made at a time, want %d", at.load, got, at.want)
			}
		}
	})
}

func TestRunLimiterOfAFixedNumber(t *testing.T) {
	t.Parallel()
	l := newRunLimiter(1)
	l.adjustToLoad(t.Context(), func() (float64, bool) { return 0, true })
	if !l.acquire(t.Context()) {
		t.Fatal("the first run may not begin")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if l.acquire(ctx) {
		t.Error("a second run began beside the first")
	}
	l.release()
	if !l.acquire(t.Context()) {
		t.Error("no run may begin after the end of the first")
	}
}
