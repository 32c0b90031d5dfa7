package controller

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	firstRetryDelay   = 500 * time.Millisecond
	longestRetryDelay = 5 * time.Minute
	// A conflict is over as soon as the newer version is known.
	firstConflictDelay   = 20 * time.Millisecond
	longestConflictDelay = 5 * time.Second
)

// exponentialDelay returns the wait after the attempt-th failure in a row. It doubles from first to
// longest, and half of it is random.
func exponentialDelay(first, longest time.Duration, attempt int) time.Duration {
	d := longest
	if shift := attempt - 1; shift < 20 {
		d = min(first<<max(shift, 0), longest)
	}
	return d/2 + rand.N(d/2+1)
}

// withJitter returns d, or up to a tenth more. It returns the longest Duration at most.
func withJitter(d time.Duration) time.Duration {
	more := rand.N(d/10 + 1)
	return min(d, math.MaxInt64-more) + more
}

// DefaultBackoff returns the wait of an attempt, from 1 on, as [Controller.Backoff] counts them: at most half
// a second at first, twice as long for each attempt, and five minutes in the end. Half of each
// wait is random.
func DefaultBackoff(attempt int) time.Duration {
	return exponentialDelay(firstRetryDelay, longestRetryDelay, attempt)
}
