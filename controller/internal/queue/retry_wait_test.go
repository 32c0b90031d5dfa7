package queue

import (
	"math"
	"testing"
	"time"
)

// Each failure doubled the wait, so that an outage of a third of a second with ten changes led to a wait of five minutes.
func TestRetryWaitGrowsByTime(t *testing.T) {
	t.Parallel()
	start := time.Now()
	double := func(attempt int) time.Duration { return time.Second << (attempt - 1) }
	always := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	var w RetryWait
	for _, step := range []struct {
		at, demanded time.Duration
		delay        func(int) time.Duration
		retryAt      time.Duration
		attempt      int
	}{
		{0, 0, double, time.Second, 1},
		{300 * time.Millisecond, 0, double, time.Second, 1},
		{999 * time.Millisecond, 0, double, time.Second, 1},
		{time.Second, 0, double, 3 * time.Second, 2},
		{1500 * time.Millisecond, 0, always(time.Second), 2500 * time.Millisecond, 2}, // a shorter wait
		{2 * time.Second, 0, always(time.Hour), 2500 * time.Millisecond, 2},
		{2 * time.Second, time.Minute, double, 62 * time.Second, 2}, // the server knows better
		{10 * time.Minute, 0, double, 604 * time.Second, 3},
		{20 * time.Minute, 0, always(math.MaxInt64), math.MaxInt64, 4},
		{30 * time.Minute, 0, always(math.MaxInt64), math.MaxInt64, 4},
		{40 * time.Minute, 0, double, 2408 * time.Second, 4},
	} {
		d := w.Next(start.Add(step.at), step.demanded, step.delay)
		if retryAt := step.at + min(d, math.MaxInt64-step.at); retryAt != step.retryAt && d < math.MaxInt64-time.Hour || w.attempt != step.attempt {
			t.Errorf("a failure at %s: attempt %d, and the retry at %s, want %d and %s", step.at, w.attempt, retryAt, step.attempt, step.retryAt)
		}
	}
}
