package lease

import (
	"fmt"
	"time"
)

// Timing holds the times of an election. All replicas of a program have the same.
type Timing struct {
	// Duration is how long other replicas wait after the last renewal that they observed.
	Duration time.Duration
	// Deadline is how long a leader may send requests after it has sent its last successful renewal.
	Deadline time.Duration
	// Period is the time between two renewals, and between two attempts to acquire the lease.
	Period time.Duration
}

// DefaultTiming returns the times of an election without a flag. They are twice those that client-go and
// controller-runtime have by default: a write that begins at any moment of a healthy term has more than 10 s. An
// API server waits as long as that for an admission webhook with the default timeoutSeconds.
func DefaultTiming() Timing { return proportional(30 * time.Second) }

// LeastWriteTime is the least time that must be left of a term for a write to be sent.
const LeastWriteTime = time.Second

// The shortest and the longest duration of a lease. With the shortest duration, 3 s, the deadline is 2 s and
// the period 0.4 s. One renewal may fail: 0.8 s after the last successful renewal, 1.2 s of the term are left,
// which is more than LeastWriteTime. With the longest duration, a program has no leader for five minutes after
// its leader crashed.
const (
	shortestDuration = 3 * time.Second
	longestDuration  = 5 * time.Minute
)

// TimingOf returns the times of an election with leases of the duration d, in the proportions of
// [DefaultTiming]. For example, 15s has the deadline 10s and the period 2s. An error names the limits of d.
// The Lease has d in seconds.
func TimingOf(d time.Duration) (Timing, error) {
	if d < shortestDuration || d > longestDuration || d%time.Second != 0 {
		return Timing{}, fmt.Errorf("the lease cannot last for %s: give a whole number of seconds, from %s to %s",
			d, shortestDuration, longestDuration)
	}
	return proportional(d), nil
}

// proportional returns the times for a duration, in the proportions that client-go has by default.
func proportional(d time.Duration) Timing {
	return Timing{Duration: d, Deadline: d * 2 / 3, Period: d * 2 / 15}
}

// attempt returns how long one request about the lease may take. Two of them fit into the deadline.
func (t Timing) attempt() time.Duration { return t.Deadline / 2 }

// slack returns the time between the deadline of a leader and the take-over by another replica.
func (t Timing) slack() time.Duration { return t.Duration - t.Deadline }
