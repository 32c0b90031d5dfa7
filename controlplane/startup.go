package main

import (
	"os"
	"runtime/debug"
	"time"
)

// collectLessAtStart makes the garbage collector run less often for the first seconds. A component allocates most of
// what it keeps when it starts. The collection of garbage at that time would cost an eighth of all
// processor time until the plane is ready.
func collectLessAtStart() {
	const (
		percent = 400
		normal  = 100
		period  = 10 * time.Second
	)
	if os.Getenv("GOGC") != "" {
		return // the user knows better
	}
	debug.SetGCPercent(percent)
	time.AfterFunc(period, func() {
		debug.SetGCPercent(normal)
		debug.FreeOSMemory() // several planes may run beside each other
	})
}
