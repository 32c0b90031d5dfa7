package followed

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	maxWrites   = 10
	writeWindow = 5 * time.Second
)

// Attempts are the attempts of a keeper to bring an object to the state that is due. They are used by one goroutine.
type Attempts struct {
	// watchError is the error of the watch since the last attempt, if the watch has shown nothing yet.
	watchError error
	// writesSince is the begin of the present writeWindow, and writes is the number of writes in it.
	writesSince time.Time
	writes      int
	// problem is why the last attempt has failed. It is empty if the attempt has succeeded.
	problem string
}

// RecordWrite records a write at a time. It reports whether there were not too many writes: another program may undo
// each one at once.
func (a *Attempts) RecordWrite(now time.Time) (isAllowed bool) {
	if now.Sub(a.writesSince) >= writeWindow {
		a.writesSince, a.writes = now, 0
	}
	a.writes++
	return a.writes <= maxWrites
}

// Attempt calls correct, and returns its error and that of the watch.
func (a *Attempts) Attempt(correct func() error) error {
	err := errors.Join(a.watchError, correct())
	a.watchError = nil
	return err
}

// RecordProblem records how an attempt has ended. It reports whether that differs from the attempt before, so that a
// problem is logged once in a row.
func (a *Attempts) RecordProblem(err error) (isChanged bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	isChanged = text != a.problem
	a.problem = text
	return isChanged
}

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
