// Package probe reports to the comparison what a program has reconciled, by JSON lines on standard
// output. The programs that are written in Go share it.
package probe

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Probe counts the objects that have been reconciled. The number at the end of an object's name
// identifies the object. Its methods are safe for concurrent use.
type Probe struct {
	mu sync.Mutex
	// isCounting is true if each reconcile is printed.
	isCounting bool
	// seen has, for each object, the passes in which the object was reconciled.
	seen []byte
	// pass is the number of complete passes, and missing is how many objects the present pass lacks.
	pass, passes byte
	missing      int
	// records has the index, the resource version and the time of each reconcile of the second pass.
	records [][3]int64
}

// FromEnv returns a probe that expects the number of objects in BENCH_OBJECTS. With BENCH_UPDATES it
// expects each object a second time, and with BENCH_COUNT it prints each reconcile. FromEnv exits if BENCH_OBJECTS is no
// number.
func FromEnv() *Probe {
	objects, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "BENCH_OBJECTS is not a number: set it to the number of objects")
		os.Exit(2)
	}
	p := &Probe{isCounting: os.Getenv("BENCH_COUNT") != "", seen: make([]byte, objects), missing: objects, passes: 1}
	if os.Getenv("BENCH_UPDATES") != "" {
		p.passes, p.records = 2, make([][3]int64, 0, objects)
	}
	return p
}

// Reconciled counts a reconcile of the object of that name and resource version. It prints "first" at the first object,
// "all" at the last one, and "updated" when all objects came a second time, each with the time in nanoseconds since
// 1970. The records of the second time follow when the comparison has read the processor time.
func (p *Probe) Reconciled(name, version string) {
	index, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isCounting {
		report("reconcile")
	}
	if err != nil || index < 0 || index >= len(p.seen) || p.pass == p.passes || p.seen[index] > p.pass {
		return
	}
	p.seen[index] = p.pass + 1
	if p.pass == 0 && p.missing == len(p.seen) {
		report("first")
	}
	if p.pass == 1 {
		number, _ := strconv.ParseInt(version, 10, 64) // the comparison refuses the version 0
		p.records = append(p.records, [3]int64{int64(index), number, time.Now().UnixNano()})
	}
	if p.missing--; p.missing > 0 {
		return
	}
	p.pass, p.missing = p.pass+1, len(p.seen)
	if p.pass == 1 {
		report("all")
		return
	}
	report("updated")
	time.AfterFunc(12*time.Second, func() {
		fmt.Printf("{\"mark\":\"records\",\"records\":%s}\n", strings.ReplaceAll(fmt.Sprint(p.records), " ", ","))
	})
}

func report(mark string) { fmt.Printf("{\"mark\":%q,\"nanos\":%d}\n", mark, time.Now().UnixNano()) }
