//go:build unix

package processors

import (
	"syscall"
	"time"
)

// usedTime returns how much processor time the program has used. It returns false if the system does not report it.
func usedTime() (used time.Duration, isKnown bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
