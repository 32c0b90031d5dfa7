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
func TestPaceFollowsTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := newPace(0)
		var running, load atomic.Int64
		go p.follow(ctx, func() (float64, bool) { return float64(load.Load()) / 100, true })
		for range 2 * p.most {
			go func() {
				for p.begin(ctx) {
					running.Add(1)
					_ = clock.SleepReal(ctx, 100*time.Millisecond)
					running.Add(-1)
					p.end()
				}
			}()
		}
		for _, at := range []struct {
			load int64
			want int
		}{{10, p.most}, {100, p.fewest}, {85, p.fewest}, {20, p.most}, {85, p.most}} {
			load.Store(at.load)
			time.Sleep(2*time.Duration(p.most)*paceInterval + 50*time.Millisecond)
			synctest.Wait()
			if got := running.Load(); got != int64(at.want) {
				t.Errorf("at a load of %d %%, %d runs are made at a time, want %d", at.load, got, at.want)
			}
		}
	})
}

func TestPaceOfAFixedNumber(t *testing.T) {
	t.Parallel()
	p := newPace(1)
	p.follow(t.Context(), func() (float64, bool) { return 0, true })
	if !p.begin(t.Context()) {
		t.Fatal("the first run may not begin")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if p.begin(ctx) {
		t.Error("a second run began beside the first")
	}
	p.end()
	if !p.begin(t.Context()) {
		t.Error("no run may begin after the end of the first")
	}
}
