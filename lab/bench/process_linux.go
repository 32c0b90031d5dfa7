package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// processorTime returns the user and system time that a process has used, in nanoseconds and
// not in ticks. The clock of another process is described in clock_getcpuclockid(3).
func processorTime(pid int) (time.Duration, error) {
	const perProcess = 2 // CPUCLOCK_SCHED
	clock := uintptr(^pid<<3 | perProcess)
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, errno)
	}
	return time.Duration(t.Nano()), nil
}
