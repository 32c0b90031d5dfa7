package follow

import (
	"math"
	"time"
)

// idleTimer calls a function when the reader of a watch has waited for too long. It counts the time in which
// it runs, and not the time of its pauses.
//
// Example of a streaming list with the limits 15 s and 120 s in total. The reader waits 10 s for an object that is new,
// works for 30 s while the timer is paused, and waits again. limit has set left to 15 s, and leftInTotal is 110 s. So
// the function is called after another 15 s.
type idleTimer struct {
	timer *time.Timer
	// resumed is when the current wait began.
	resumed time.Time
	// left is the rest of the wait that limit sets.
	left time.Duration
	// leftInTotal is the rest of the wait that limitTotal sets.
	leftInTotal time.Duration
}

const noLimit = time.Duration(math.MaxInt64)

// startIdleTimer returns a running idleTimer that calls expire after d.
func startIdleTimer(d time.Duration, expire func()) *idleTimer {
	return &idleTimer{timer: time.AfterFunc(d, expire), resumed: time.Now(), left: d, leftInTotal: noLimit}
}

// limit sets the rest of the wait to d. It does not change the rest of the total.
func (t *idleTimer) limit(d time.Duration) { t.left = d }

// limitTotal limits the sum of all waits from now on. The limit may be noLimit.
func (t *idleTimer) limitTotal(d time.Duration) { t.leftInTotal = d }

// resume begins to count.
func (t *idleTimer) resume() {
	t.resumed = time.Now()
	t.timer.Reset(min(t.left, t.leftInTotal))
}

// pause stops to count until resume.
func (t *idleTimer) pause() {
	t.timer.Stop()
	waited := time.Since(t.resumed)
	t.left -= waited
	if t.leftInTotal != noLimit {
		t.leftInTotal -= waited
	}
}
