package lease

import "time"

// Reading holds the times of the clocks of a machine at one moment, each counted from a moment of its own.
type Reading struct {
	// steady is the time of a clock that nobody sets.
	steady time.Duration
	// running is the time of a clock that goes on while the machine is suspended. It may be a clock
	// that somebody sets.
	running time.Duration
}

// longestSince returns the longest time that may have passed since an earlier reading. It is for a
// leader, which must not take its term for longer than it is.
func (r Reading) longestSince(earlier Reading) time.Duration {
	return max(r.steady-earlier.steady, r.running-earlier.running)
}

// shortestSince returns the shortest time that may have passed since an earlier reading, apart from
// the time of clocks that somebody sets. It is for a standby, which must not take the lease too early.
func (r Reading) shortestSince(earlier Reading) time.Duration { return r.steady - earlier.steady }

// Clock returns the present reading of the clocks.
type Clock func() Reading

// twoClocks returns a Clock that reads the monotonic clock of Go, which stands still on some systems
// while the machine is suspended, and the wall clock.
func twoClocks() Clock {
	start := time.Now()
	wall := start.Round(0)
	return func() Reading {
		now := time.Now()
		return Reading{steady: now.Sub(start), running: now.Round(0).Sub(wall)}
	}
}
