// Package tally measures a program that reconciles every object of a kind once. All measured
// operators use it, so that they are measured alike.
package tally

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Figures is what a program prints, as JSON, when all objects have been reconciled.
type Figures struct {
	// First and All are the seconds from the start of main to the first reconcile and to
	// the last.
	First, All float64
	// CPU is the seconds of processor time until the last reconcile.
	CPU float64
	// Heap is the bytes in use after two garbage collections. The second collection frees what
	// pools keep.
	Heap uint64
	// Resident is the resident memory of the process in megabytes, as Linux reports it.
	// Anonymous is the part of Resident that is not mapped from files.
	Resident, Anonymous float64
}

// Tally counts the objects that have been reconciled. Its methods are safe for concurrent use.
type Tally struct {
	started time.Time
	mu      sync.Mutex
	seen    map[string]bool
	missing int
	figures Figures
}

// New returns a Tally whose time starts now. The environment variable BENCH_OBJECTS holds the
// number of objects. New exits if the variable is missing.
func New() *Tally {
	count, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "BENCH_OBJECTS is not a number: set it to the number of objects")
		os.Exit(2)
	}
	return &Tally{started: time.Now(), missing: count, seen: make(map[string]bool)}
}

// Reconciled counts an object. After the last object it prints the figures.
func (t *Tally) Reconciled(object string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missing == 0 || t.seen[object] {
		return
	}
	if len(t.seen) == 0 {
		t.figures.First = time.Since(t.started).Seconds()
	}
	t.seen[object] = true
	if t.missing--; t.missing > 0 {
		return
	}
	t.figures.All = time.Since(t.started).Seconds()
	t.figures.CPU = processorTime()
	t.seen = nil
	go t.print()
}

// print prints the figures. It runs outside of the worker, because the worker's object would be
// in use otherwise.
func (t *Tally) print() {
	time.Sleep(time.Second)
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.figures.Heap = m.HeapAlloc
	t.figures.Resident, t.figures.Anonymous = memory()
	text, err := json.Marshal(t.figures)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func processorTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// memory returns the resident and the anonymous memory of the process in megabytes. Both are 0
// where the kernel does not report them.
func memory() (resident, anonymous float64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		switch name {
		case "VmRSS":
			resident = kilobytes / 1000
		case "RssAnon":
			anonymous = kilobytes / 1000
		}
	}
	return resident, anonymous
}
