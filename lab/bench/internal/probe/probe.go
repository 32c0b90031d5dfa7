// Package probe reports to the comparison what a program has reconciled, by lines on standard
// output. The programs that are written in Go share it.
package probe

import (
	"bufio"
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
	mu      sync.Mutex
	objects int
	// updates is true if the comparison updates each object once after the first pass.
	updates               bool
	firstPass, secondPass pass
	records               []record
}

// pass is the set of the objects that were reconciled. It takes one bit for each object.
type pass struct {
	seen    []uint64
	missing int
}

// record is one reconcile after an update.
type record struct {
	index   int
	version uint64
	nanos   int64
}

// FromEnv returns a probe that expects the number of objects in BENCH_OBJECTS. If BENCH_UPDATES
// is set, the probe also expects each object a second time. FromEnv exits if BENCH_OBJECTS is no
// number.
func FromEnv() *Probe {
	objects, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "BENCH_OBJECTS is not a number: set it to the number of objects")
		os.Exit(2)
	}
	p := &Probe{objects: objects, updates: os.Getenv("BENCH_UPDATES") != "", firstPass: newPass(objects)}
	if p.updates {
		p.secondPass, p.records = newPass(objects), make([]record, 0, objects)
	}
	return p
}

// Reconciled counts a reconcile of the object of that name and resource version. It prints
// "first" at the first object, "all" at the last one, and "updated" when all objects came a
// second time, each with the time in nanoseconds since 1970. After "updated" it prints one line
// for each record.
func (p *Probe) Reconciled(name, version string) {
	index, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil || index < 0 || index >= p.objects {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.firstPass.missing > 0 {
		first := p.firstPass.missing == p.objects
		added := p.firstPass.add(index)
		if added && first {
			fmt.Println("first", time.Now().UnixNano())
		}
		if added && p.firstPass.missing == 0 {
			fmt.Println("all", time.Now().UnixNano())
		}
		return
	}
	if !p.updates || !p.secondPass.add(index) {
		return
	}
	number, _ := strconv.ParseUint(version, 10, 64) // the comparison refuses the version 0
	p.records = append(p.records, record{index, number, time.Now().UnixNano()})
	if p.secondPass.missing == 0 {
		fmt.Println("updated", time.Now().UnixNano())
		p.printRecords()
	}
}

func (p *Probe) printRecords() {
	out := bufio.NewWriter(os.Stdout)
	for _, r := range p.records {
		fmt.Fprintln(out, "record", r.index, r.version, r.nanos)
	}
	_ = out.Flush() // without its reader the program has no purpose
}

func newPass(objects int) pass {
	return pass{seen: make([]uint64, (objects+63)/64), missing: objects}
}

// add adds an object and reports whether the object is new.
func (p *pass) add(index int) bool {
	bit := uint64(1) << (index % 64)
	if p.seen[index/64]&bit != 0 {
		return false
	}
	p.seen[index/64] |= bit
	p.missing--
	return true
}
