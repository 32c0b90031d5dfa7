package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/plane/process"
)

// runningProgram is a running program with the marks that it printed: see package probe.
type runningProgram struct {
	process *process.Process
	started time.Time
	first   chan mark
	all     chan mark
	updated chan mark
	log     *process.Tail

	mu      sync.Mutex
	records []record
}

// mark is the moment at which a program reached a mark. It has the processor time of the program at that
// moment.
type mark struct {
	time time.Time
	cpu  time.Duration
}

// record is a reconcile after an update.
type record struct {
	index   int
	version uint64
	time    time.Time
}

// start starts p with a kubeconfig, its work and further variables of the environment.
func start(p *program, kubeconfig, work string, env ...string) (*runningProgram, error) {
	r := &runningProgram{
		first: make(chan mark, 1), all: make(chan mark, 1), updated: make(chan mark, 1), log: new(process.Tail),
	}
	cmd := exec.Command(p.path)
	if p.isElected {
		// The Lease of the program before is still held: that program was killed.
		name := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		cmd.Args = append(cmd.Args, "--leader-elect", "--lease-namespace", "default", "--lease-name", name)
	}
	cmd.Env = append(append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "KUBECONFIG=" + kubeconfig, "BENCH_WORK=" + work,
	}, p.env...), env...)
	cmd.Stderr = r.log
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = writer
	r.started = time.Now()
	if r.process, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, errors.Join(err, reader.Close(), writer.Close())
	}
	_ = writer.Close() // the child has its own copy
	go func() {
		defer reader.Close()
		r.read(reader)
	}()
	return r, nil
}

// read reads what the program prints until the program ends.
func (r *runningProgram) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		nanos, _ := strconv.ParseInt(words[len(words)-1], 10, 64)
		at := time.Unix(0, nanos)
		switch words[0] {
		case "first", "all", "updated":
			cpu, err := processorTime(r.process.Pid())
			if err != nil {
				return // the program was killed
			}
			map[string]chan mark{"first": r.first, "all": r.all, "updated": r.updated}[words[0]] <- mark{at, cpu}
		case "record":
			if len(words) != 4 {
				continue
			}
			index, _ := strconv.Atoi(words[1])
			version, _ := strconv.ParseUint(words[2], 10, 64)
			r.mu.Lock()
			r.records = append(r.records, record{index, version, at})
			r.mu.Unlock()
		}
	}
}

// wait waits until the program has reached a mark, and returns an error if that takes longer
// than limit.
func (r *runningProgram) wait(ctx context.Context, what string, marks <-chan mark, limit time.Duration) (mark, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case m := <-marks:
		return m, nil
	case <-ctx.Done():
		return mark{}, ctx.Err()
	case <-r.process.Done():
		return mark{}, fmt.Errorf("it ended before it had %s: %w\n%s", what, r.process.Err(), r.log)
	case <-timer.C:
		return mark{}, fmt.Errorf("it had not %s within %s\n%s", what, limit, r.log)
	}
}

// waitForRecords waits until n records were read.
func (r *runningProgram) waitForRecords(ctx context.Context, n int) ([]record, error) {
	for range 100 {
		r.mu.Lock()
		records := r.records
		r.mu.Unlock()
		if len(records) == n {
			return records, nil
		}
		if err := clock.SleepReal(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("it has not printed %d records", n)
}

// kill ends the program.
func (r *runningProgram) kill() { r.process.Stop(syscall.SIGKILL, false, time.Second) }

// memory is the memory of a process in bytes: the resident memory, the part of it that is not
// mapped from files, and the highest resident memory so far.
type memory struct{ resident, anonymous, peak float64 }

// memory returns the memory of the program, as Linux reports it.
func (r *runningProgram) memory() (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Pid()))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		switch name {
		case "VmRSS":
			m.resident = 1024 * kilobytes
		case "RssAnon":
			m.anonymous = 1024 * kilobytes
		case "VmHWM":
			m.peak = 1024 * kilobytes
		}
	}
	if m.resident == 0 {
		return m, errors.New("the kernel reports no resident memory")
	}
	return m, nil
}
