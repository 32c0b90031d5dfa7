package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

// ErrOver is the error of requests after the term of this process.
var ErrOver = errors.New(
	"this process does not lead any more: the deadline of its lease has passed, or it has released the lease")

// errLittleLeft is the error of writes at the end of the term.
var errLittleLeft = fmt.Errorf(
	"less than %s is left of the term, because the lease could not be renewed: a write needs more", LeastWriteTime)

// term is the term of one process: its phase, its deadline, and the writes that are under way. It makes no
// requests. All methods may be called concurrently.
//
// An example with the default times. A lease lasts for 30 s, and the deadline is 20 s after the last renewal:
//
//	 0.0 s  a renewal is sent. The answer at 0.3 s makes the deadline 20.0 s
//	 4.0 s  the next renewal is sent. The answer at 4.1 s makes the deadline 24.0 s
//	 5.0 s  the network breaks. No later renewal is answered
//	20.0 s  a write begins, and may take 4 s
//	23.5 s  a write is refused, because less than LeastWriteTime is left. A read passes
//	24.0 s  the write of 20.0 s is given up, and all later requests are refused
//	34.0 s  another replica takes the lease. It saw the renewal of 4.0 s, at 4.0 s at the earliest
type term struct {
	clock  Clock
	timing Timing

	// lost is closed when the phase becomes afterTerm.
	lost chan struct{}

	mu    sync.Mutex
	phase phase
	// sent is when the last successful renewal was sent.
	sent Reading
	// openWrites is the number of writes that are under way.
	openWrites int
	// writesEnded is closed when openWrites becomes 0. It is nil before the end of the term.
	writesEnded chan struct{}
	// hasUncertainWrite is true after a write that may have been carried out although it failed. uncertainAt is when the
	// last write of this kind failed.
	hasUncertainWrite bool
	uncertainAt       Reading
}

// newTerm returns a term that has not begun.
func newTerm(clock Clock, timing Timing) *term {
	return &term{clock: clock, timing: timing, lost: make(chan struct{})}
}

// phase is the state of a process with respect to its term. The phases follow each other in this order. The
// phase released may be missing.
type phase int

const (
	// beforeTerm is the phase of a standby.
	beforeTerm phase = iota
	// inTerm is the phase of a leader.
	inTerm
	// released is the phase after the orderly end of the term. Only the elector sends requests then, until
	// the deadline.
	released
	// afterTerm is the phase after the deadline, or after the loss of the lease.
	afterTerm
)

// check returns an error if no request may be sent.
func (t *term) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _, err := t.leftLocked(t.expireLocked())
	return err
}

// expireLocked ends the term if the deadline has passed. It returns the present reading.
func (t *term) expireLocked() (now Reading) {
	now = t.clock()
	if t.phase == inTerm && t.timeLeftLocked(now) <= 0 {
		t.loseLocked()
	}
	return now
}

// leftLocked returns what is left of the term at the reading now, or an error if no request may be sent. isLimited is
// false before the term. Then left is zero.
func (t *term) leftLocked(now Reading) (left time.Duration, isLimited bool, err error) {
	switch t.phase {
	case beforeTerm:
		return 0, false, nil
	case inTerm:
		return t.timeLeftLocked(now), true, nil
	default:
		return 0, true, ErrOver
	}
}

// timeLeftLocked returns the time from the reading now to the deadline. It is zero or less after the deadline.
func (t *term) timeLeftLocked(now Reading) time.Duration {
	return t.timing.Deadline - now.longestSince(t.sent)
}

// loseLocked ends the term because the lease is lost.
func (t *term) loseLocked() {
	if t.phase != afterTerm {
		t.phase = afterTerm
		close(t.lost)
	}
}

// beginWrite records that a write begins. It returns how long the write may take, or an error if the write must
// not begin. isLimited is false before the term: then the write may take any time.
func (t *term) beginWrite() (left time.Duration, isLimited bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left, isLimited, err = t.leftLocked(t.expireLocked())
	switch {
	case err != nil:
		return 0, true, err
	case isLimited && left < LeastWriteTime:
		return 0, true, errLittleLeft
	}
	t.openWrites++
	return left, isLimited, nil
}

// endWrite records the end of a write with err, which may be nil.
func (t *term) endWrite(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.openWrites--; t.openWrites == 0 && t.writesEnded != nil {
		close(t.writesEnded)
		t.writesEnded = nil
	}
	if err != nil && isUncertain(err) {
		t.hasUncertainWrite, t.uncertainAt = true, t.clock()
	}
}

// extend records that a renewal was successful. sent is the reading when the renewal was sent. The first
// renewal begins the term. It returns false if the term is over: the renewal comes too late.
func (t *term) extend(sent Reading) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == beforeTerm {
		t.phase, t.sent = inTerm, sent
	}
	if t.expireLocked(); t.phase != inTerm {
		return false
	}
	t.sent = sent
	t.expireLocked() // the answer may come after the deadline that the renewal has set
	return t.phase == inTerm
}

// lose ends the term because the lease is lost.
func (t *term) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loseLocked()
}

// isValid reports whether this process leads: its term has begun, and is not over.
func (t *term) isValid() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked()
	return t.phase == inTerm
}

// isLost reports whether the lease is lost.
func (t *term) isLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked()
	return t.phase == afterTerm
}

// waitLost waits until the lease is lost. It returns false if ctx ends before. waitLost does not rely on
// the timer of another goroutine, because the timers of a suspended machine may stand still. It looks at the clock once
// in a second.
func (t *term) waitLost(ctx context.Context) bool {
	for !t.isLost() {
		select {
		case <-t.lost:
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
	return true
}

// release ends the term in an orderly way, and waits for writes that are under way until ctx ends. It returns
// false if the server may still carry out a write. The lease must then expire before another process gets it.
func (t *term) release(ctx context.Context) bool {
	writesEnded, ok := t.beginRelease()
	if !ok {
		return false
	}
	select {
	case <-writesEnded:
	case <-ctx.Done():
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// The server ends each write by the deadline that was in force when the write was sent.
	return !t.hasUncertainWrite || t.clock().shortestSince(t.uncertainAt) > t.timing.Duration
}

// beginRelease ends the term in an orderly way. It returns a channel that is closed when no write is under
// way, or false if there is no term.
func (t *term) beginRelease() (writesEnded <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expireLocked(); t.phase != inTerm {
		return nil, false
	}
	t.phase = released
	ended := make(chan struct{})
	if t.openWrites == 0 {
		close(ended)
	} else {
		t.writesEnded = ended
	}
	return ended, true
}

// isOpen reports whether bytes may leave the process.
func (t *term) isOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.phase {
	case inTerm:
		t.expireLocked()
		return t.phase == inTerm
	case released:
		return t.timeLeftLocked(t.clock()) > 0
	default:
		return t.phase == beforeTerm
	}
}

// isUncertain reports whether a write that failed with err may have been carried out. It is stricter than
// [kube.IsUnknown]: an error of an unknown type counts too.
func isUncertain(err error) bool {
	e, ok := kube.AsError(err)
	return !ok || e.Unknown
}
