package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock returns the clock of the machine. It is CLOCK_BOOTTIME: nobody sets this clock, and it goes on
// while the machine is suspended. Without CLOCK_BOOTTIME it is the clock of other systems.
func SystemClock() Clock {
	if _, ok := bootTime(); !ok {
		return twoClocks()
	}
	return func() Reading {
		t, _ := bootTime() // the clock exists
		return Reading{steady: t, running: t}
	}
}

// bootTime returns the time since the machine was started. It reports whether the clock exists.
func bootTime() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
