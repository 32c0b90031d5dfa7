package lease

import "time"

// Reading holds the times of two clocks of a machine at one moment. Each clock counts from another moment.
//
// For example, a machine is suspended for 20 s. Its steady clock may stand still, and its running clock goes on.
// Between two readings, 5 s apart otherwise, the leader counts 25 s, and a standby counts 5 s. Each errs on the
// safe side.
type Reading struct {
	// steady is the time of a clock that nobody sets.
	steady time.Duration
	// running is the time of a clock that goes on while the machine is suspended. Somebody may set it.
	running time.Duration
}

// longestSince returns the longest time that may have passed since an earlier reading. A leader uses it, because
// its term must not last too long.
func (r Reading) longestSince(earlier Reading) time.Duration {
	return max(r.steady-earlier.steady, r.running-earlier.running)
}

// shortestSince returns the shortest time that may have passed since an earlier reading. It ignores clocks that
// somebody sets. A term uses it for a write that may still be under way, because a lease must not be released too
// early.
func (r Reading) shortestSince(earlier Reading) time.Duration { return r.steady - earlier.steady }

// Clock returns the present reading of the clocks.
type Clock func() Reading

// twoClocks returns a Clock that reads the monotonic clock of Go and the wall clock. On some systems the
// monotonic clock stands still while the machine is suspended.
func twoClocks() Clock {
	start := time.Now()
	wall := start.Round(0)
	return func() Reading {
		now := time.Now()
		return Reading{steady: now.Sub(start), running: now.Round(0).Sub(wall)}
	}
}
