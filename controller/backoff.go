package controller

import (
	"math/rand/v2"
	"time"
)

const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = 5 * time.Minute
	// A conflict is over as soon as the newer version is known.
	firstConflict   = 20 * time.Millisecond
	longestConflict = 5 * time.Second
)

// exponential doubles from first to longest. Half of it is left to chance.
func exponential(first, longest time.Duration, attempt int) time.Duration {
	d := longest
	if shift := attempt - 1; shift < 20 {
		d = min(first<<max(shift, 0), longest)
	}
	return d/2 + rand.N(d/2+1)
}

// withJitter returns d, or up to a tenth more.
func withJitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// DefaultBackoff waits half a second to begin with, twice as long after each failure in a
// row, and five minutes at most; the half of each wait is left to chance.
func DefaultBackoff(attempt int) time.Duration {
	return exponential(firstRetry, longestRetry, attempt)
}
