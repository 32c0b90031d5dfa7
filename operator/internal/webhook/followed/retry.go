package followed

import (
	"math/rand/v2"
	"time"
)

const (
	minRetry = time.Second
	maxRetry = 5 * time.Second
)

// Retry spreads the attempts of a keeper over time. It is used by one goroutine.
type Retry struct {
	// failures is the number of attempts in a row that have failed.
	failures int
}

// Next returns a channel that fires when the next attempt is due, or nil if the last one has succeeded.
func (r *Retry) Next(hasSucceeded bool) <-chan time.Time {
	if hasSucceeded {
		r.failures = 0
		return nil
	}
	wait := min(minRetry<<min(r.failures, 10), maxRetry)
	r.failures++
	return time.After(wait/2 + rand.N(wait/2)) // replicas do not act at the same moment
}
