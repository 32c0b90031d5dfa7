// Package processors runs the Go code of a program on one processor while one is enough.
//
// Most programs handle one event now and then. With several processors, each event wakes up threads that search for other
// work and find none. On one processor an event costs a third less of processor time, and is handled sooner.
package processors

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/yare-go/yare/operator/internal/cgroup"
)

const (
	// busyShare is the share of one processor from which the program needs more than one.
	busyShare = 0.85
	// calmShare is the share of one processor below which one processor is enough again.
	calmShare = 0.5
	// minWindow is the shortest time in which a program with one processor can be busy.
	minWindow = 50 * time.Millisecond
	// calmPeriod is how often a program with several processors checks whether one is enough.
	calmPeriod = time.Second
)

// Adapt sets GOMAXPROCS to one when the program uses less than half of a processor, and to Go's default when it uses
// most of one. In a container with a limit of one processor or less, Adapt sets one for good: Go's default is two there.
// end sets the default. Adapt changes nothing if the environment variable GOMAXPROCS is set, or if the program has set
// GOMAXPROCS itself.
//
// A program at rest does nothing for it. A program with one processor checks its share after each garbage collection: a
// busy program has several in a second. A program with several processors checks its share each second.
//
// For example, the default is 4. A program starts, and reads and reconciles 10,000 objects in a second and a half. In its
// second second it has used 0.4 s of processor time, so GOMAXPROCS is 1. An hour later all objects change. After 60 ms
// and two collections the program has used 57 ms, which is a share of 0.95, and GOMAXPROCS is 4 again.
func Adapt() (end func()) {
	set := runtime.GOMAXPROCS(0)
	runtime.SetDefaultGOMAXPROCS()
	hasSetting := os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) != set
	if _, isKnown := usedTime(); hasSetting || !isKnown || runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(set)
		return func() {}
	}
	if millis, ok := processorLimit(os.DirFS("/")); ok && millis <= 1000 {
		runtime.GOMAXPROCS(1)
		return runtime.SetDefaultGOMAXPROCS
	}
	a := &adapter{
		now:    time.Now,
		used:   func() time.Duration { used, _ := usedTime(); return used },
		setOne: func() { runtime.GOMAXPROCS(1) }, setDefault: runtime.SetDefaultGOMAXPROCS,
	}
	a.start()
	a.checkAfterCollection()
	return a.end
}

// processorLimit returns the lowest limit of the control groups of this process, in thousandths of a processor. It
// returns false if there is no limit. root is the root of the file system.
func processorLimit(root fs.FS) (millis int64, ok bool) {
	return cgroup.LowestLimit(root, "cpu", func(folder string, isVersion1 bool) (int64, bool) {
		names := []string{"/cpu.max"} // the time in a period, and the period
		if isVersion1 {
			names = []string{"/cpu.cfs_quota_us", "/cpu.cfs_period_us"}
		}
		var text string
		for _, name := range names {
			data, err := fs.ReadFile(root, folder+name)
			if err != nil {
				return 0, false
			}
			text += string(data) + " "
		}
		var quota, period int64
		if _, err := fmt.Sscan(text, &quota, &period); err != nil || quota <= 0 || period <= 0 {
			return 0, false // max in version 2, and -1 in version 1
		}
		return 1000 * quota / period, true
	})
}

// adapter decides between one processor and the default.
type adapter struct {
	now func() time.Time
	// used returns how much processor time the program has used.
	used func() time.Duration
	// setOne sets GOMAXPROCS to one, and setDefault to the default.
	setOne, setDefault func()

	mu      sync.Mutex
	isEnded bool
	// isDefault is true while GOMAXPROCS is the default. calmTimer runs then, unless isEnded is true.
	isDefault bool
	calmTimer *time.Timer
	// windowBegan and usedBefore are the time and the used processor time at the last check.
	windowBegan time.Time
	usedBefore  time.Duration
}

// start begins with the default.
func (a *adapter) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.windowBegan, a.usedBefore = a.now(), a.used()
	a.isDefault, a.calmTimer = true, time.AfterFunc(calmPeriod, a.check)
}

// checkAfterCollection calls check after each garbage collection, until the end.
func (a *adapter) checkAfterCollection() {
	// The cleanup of an object that nothing refers to runs after the next collection. An object of 16 bytes or more is
	// not allocated together with others.
	runtime.AddCleanup(new([16]byte), func(a *adapter) {
		a.check()
		if !a.hasEnded() {
			a.checkAfterCollection()
		}
	}, a)
}

// hasEnded reports whether end was called.
func (a *adapter) hasEnded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.isEnded
}

// check computes the share since the last check, and sets the number of processors.
func (a *adapter) check() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, shortest := a.now(), minWindow
	if a.isDefault {
		shortest = calmPeriod // a program that waits for a server is not calm yet
	}
	window := now.Sub(a.windowBegan)
	if a.isEnded || window < shortest {
		return
	}
	used := a.used()
	share := float64(used-a.usedBefore) / float64(window)
	a.windowBegan, a.usedBefore = now, used
	switch {
	case !a.isDefault && share >= busyShare:
		a.isDefault = true
		a.setDefault()
		a.calmTimer.Reset(calmPeriod)
	case a.isDefault && share < calmShare:
		a.isDefault = false
		a.calmTimer.Stop()
		a.setOne()
	case a.isDefault:
		a.calmTimer.Reset(calmPeriod)
	}
}

// end sets the default. After end the adapter changes nothing.
func (a *adapter) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isEnded = true
	a.calmTimer.Stop()
	a.setDefault()
}
