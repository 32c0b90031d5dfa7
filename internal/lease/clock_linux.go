package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock returns the clock of the machine. It is CLOCK_BOOTTIME, which nobody sets and which goes
// on while the machine is suspended; or the clocks of other systems where that is missing.
func SystemClock() Clock {
	if _, ok := bootTime(); !ok {
		return twoClocks()
	}
	return func() Reading {
		t, _ := bootTime() // it was there
		return Reading{steady: t, running: t}
	}
}

// bootTime returns the time since the machine was started. It reports whether the clock is there.
func bootTime() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
