package followed

import (
	"errors"
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
