package lease

import (
	"fmt"
	"time"
)

// Timing holds the times of an election. All replicas of a program have the same.
type Timing struct {
	// Duration is how long other replicas wait after the last renewal that they observed. It is a
	// whole number of seconds, because the Lease has it in seconds.
	Duration time.Duration
	// Deadline is how long after its last successful renewal was sent a leader may send requests.
	Deadline time.Duration
	// Period is the time between two renewals, and between two attempts to acquire the lease.
	Period time.Duration
}

// DefaultTiming returns the times that client-go and controller-runtime have by default.
func DefaultTiming() Timing {
	return Timing{Duration: 15 * time.Second, Deadline: 10 * time.Second, Period: 2 * time.Second}
}

// LeastWriteTime is what must be left of a term for a write to be sent.
const LeastWriteTime = time.Second

// check returns what is wrong with t.
func (t Timing) check() error {
	switch {
	case t.Duration < time.Second || t.Duration%time.Second != 0:
		return fmt.Errorf("the duration of the lease is %s: it must be a whole number of seconds", t.Duration)
	case t.Deadline >= t.Duration:
		return fmt.Errorf("the deadline of the lease is %s: it must be shorter than the duration of %s", t.Deadline, t.Duration)
	case t.Period <= 0 || t.Deadline < LeastWriteTime+t.Period:
		return fmt.Errorf("the period of the lease is %s: with the %s that a write needs at least, it must fit into the deadline of %s", t.Period, LeastWriteTime, t.Deadline)
	}
	return nil
}

// attempt returns how long one request about the lease may take. Two of them fit into the deadline.
func (t Timing) attempt() time.Duration { return t.Deadline / 2 }

// slack returns the time between the deadline of a leader and the take-over by another one.
func (t Timing) slack() time.Duration { return t.Duration - t.Deadline }
