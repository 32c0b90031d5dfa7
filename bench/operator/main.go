// Command operator reconciles every object of a kind once, without writing anything, and
// tells what that took. The benchmarks beside it run it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/bench/shop"
	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// Figures are what it prints, as JSON, when all objects have been reconciled.
type Figures struct {
	// First and All are the seconds from the start of the program to the first reconcile and
	// to the last.
	First, All float64
	// CPU is the seconds of processor time so far.
	CPU float64
	// Heap is the bytes in use after two collections, the second of which takes what pools
	// keep.
	Heap uint64
	// Resident and Anonymous are the megabytes that Linux says the process has, and those of
	// them that are no parts of files.
	Resident, Anonymous float64
}

func main() {
	count, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "set BENCH_OBJECTS to the number of objects that there are")
		os.Exit(2)
	}
	t := &tally{started: time.Now(), missing: count, seen: make(map[string]bool)}
	if os.Getenv("BENCH_KIND") == "Pod" {
		operator.Main(controller.New(reconcile[corev1.Pod], controller.OnResult(t.take)))
	}
	operator.Main(controller.New(reconcile[shop.Shop], controller.OnResult(t.take)))
}

func reconcile[T any](context.Context, *T, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// tally counts the objects that have been reconciled.
type tally struct {
	started time.Time
	mu      sync.Mutex
	seen    map[string]bool
	missing int
	figures Figures
}

func (t *tally) take(r controller.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missing == 0 || t.seen[r.Object.String()] {
		return
	}
	if len(t.seen) == 0 {
		t.figures.First = time.Since(t.started).Seconds()
	}
	t.seen[r.Object.String()] = true
	if t.missing--; t.missing > 0 {
		return
	}
	t.figures.All = time.Since(t.started).Seconds()
	t.figures.CPU = processorTime()
	t.seen = nil
	go t.print()
}

// print is apart from the worker, whose object would be in use otherwise.
func (t *tally) print() {
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

// memory is what the kernel says of the process, in MB; nothing where it does not.
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
