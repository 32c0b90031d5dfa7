package clock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

func TestRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.From(t.Context())
		sleeper := clock.NewSleeper(c, "a sleeper")
		defer sleeper.Close()
		defer c.Hold("a hold")()
		start := time.Now()
		if !sleeper.Sleep(t.Context(), time.Hour) || !c.Now().Equal(start.Add(time.Hour)) || c.Since(start) != time.Hour {
			t.Errorf("after an hour it is %s later", c.Since(start))
		}
	})
}

// Each sleeper sees each of its times, in their order, although no real time passes.
func TestAdvanceStopsAtEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		ctx, cancel := context.WithCancel(clock.With(t.Context(), c))
		defer cancel()
		start := time.Now()
		var mu sync.Mutex
		var seen []time.Duration
		var ended sync.WaitGroup
		for _, interval := range []time.Duration{10 * time.Second, 25 * time.Second} {
			sleeper := clock.NewSleeper(clock.From(ctx), interval.String())
			ended.Go(func() {
				defer sleeper.Close()
				for sleeper.Sleep(ctx, interval) {
					mu.Lock()
					seen = append(seen, c.Since(start))
					mu.Unlock()
				}
			})
		}
		if err := c.Advance(ctx, time.Minute, time.Second); err != nil {
			t.Fatal(err)
		}
		var want []time.Duration
		for _, seconds := range []int{10, 20, 25, 30, 40, 50, 50, 60} {
			want = append(want, time.Duration(seconds)*time.Second)
		}
		mu.Lock()
		if !slices.Equal(seen, want) {
			t.Errorf("seen %v, want %v", seen, want)
		}
		mu.Unlock()
		if now, passed := c.Since(start), time.Since(start); now != time.Minute || passed != 0 {
			t.Errorf("the clock moved by %s within %s", now, passed)
		}
		// Between and after the moves it goes on as the real clock does.
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != len(want)+1 || seen[len(want)] != 70*time.Second {
			t.Errorf("then seen %v", seen[len(want):])
		}
		cancel()
		ended.Wait()
	})
}

func TestAdvanceThatCannotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		start := c.Now()
		release := c.Hold("the controller of gardens")
		if err := c.Advance(t.Context(), time.Minute, time.Second); err == nil || !strings.Contains(err.Error(), "the controller of gardens") {
			t.Errorf("busy: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("it is over")
		time.AfterFunc(time.Second, func() { cancel(over) })
		if err := c.Advance(ctx, time.Minute, time.Hour); !errors.Is(err, over) {
			t.Errorf("ended: %v", err)
		}
		if d := c.Since(start); d != 2*time.Second {
			t.Errorf("it was moved all the same: %s", d)
		}
		time.AfterFunc(time.Second, release)
		if err := c.Advance(t.Context(), time.Minute, time.Hour); err != nil {
			t.Error(err)
		}
		if d := c.Since(start); d != time.Minute+3*time.Second {
			t.Errorf("it was moved to %s", d)
		}
	})
}

// Members come and go while a clock is moved.
func TestConcurrentUse(t *testing.T) {
	c := clock.New()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	for range 4 {
		ended.Go(func() {
			for ctx.Err() == nil {
				c.Hold("a hold")()
				sleeper := clock.NewSleeper(c, "a sleeper")
				for range 3 {
					sleeper.Sleep(ctx, time.Minute)
				}
				sleeper.Close()
			}
		})
	}
	for range 200 {
		if err := c.Advance(ctx, time.Minute, time.Minute); err != nil {
			t.Error(err)
		}
	}
	cancel()
	ended.Wait()
}
