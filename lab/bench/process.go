package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yare-go/yare/internal/plane/process"
)

// runningProgram is a running program, which prints events: see package probe.
type runningProgram struct {
	process *process.Process
	// group is the name of its control groups.
	group   string
	started time.Time
	// startCPU is the processor time of the shell that became the program.
	startCPU time.Duration
	events   chan event
	// reconciles counts the reconciles of a program that prints each of them.
	reconciles atomic.Int64
	log        *process.Tail
}

// event is a line that a program has printed, with the processor time of the program at that moment.
type event struct {
	Mark  string `json:"mark"`
	Nanos int64  `json:"nanos"`
	// Records has the index, the resource version and the time of each reconcile after an update.
	Records [][3]int64 `json:"records"`
	cpu     time.Duration
}

// groupRoot is where control groups are.
const groupRoot = "/sys/fs/cgroup/"

// hasControlGroups reports whether control groups can be made, of version 2 or 1.
func hasControlGroups() bool {
	return unix.Access(groupRoot+"cgroup.procs", unix.W_OK) == nil ||
		unix.Access(groupRoot+"memory/cgroup.procs", unix.W_OK) == nil
}

// shell makes and enters the control groups $0, with $1 microseconds of each 100 ms if $1 is not 0. It becomes the program
// when it has read a line. So what the kernel counts for the groups, and the time of the start, are those of the program.
const shell = `(
cd /sys/fs/cgroup; groups=memory/$0; quota=cpu/$0/cpu.cfs_quota_us; [ $1 = 0 ] || groups="$groups cpu/$0"
[ -e cgroup.controllers ] && groups=$0 && quota=$0/cpu.max && echo +memory +cpu >cgroup.subtree_control
mkdir $groups && for g in $groups; do echo $$ >$g/cgroup.procs; done && { [ $1 = 0 ] || echo $1 >$quota; }
) || [ $1 = 0 ] || exit 1
shift; echo '{"mark":"ready"}'; read -r line; exec "$@" </dev/null`

// start starts a command in a control group of a name, with limit processors if limit is not 0, and waits until the
// command runs.
func start(ctx context.Context, group string, limit float64, env []string, command ...string) (*runningProgram, error) {
	r := &runningProgram{group: group, events: make(chan event, 8), log: new(process.Tail)}
	cmd := exec.Command("sh", append([]string{"-c", shell, group, fmt.Sprint(limit * 1e5)}, command...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	cmd.Stderr = r.log
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if r.process, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	go r.read(json.NewDecoder(output))
	ready, err := r.wait(ctx, "ready")
	if err == nil {
		r.startCPU, r.started = ready.cpu, time.Now()
		_, err = io.WriteString(input, "\n")
	}
	if err != nil {
		r.kill()
	}
	return r, err
}

// read reads what the program prints until the program ends.
func (r *runningProgram) read(lines *json.Decoder) {
	for {
		var e event
		if lines.Decode(&e) != nil {
			return // the program was killed
		}
		if e.Mark == "reconcile" {
			r.reconciles.Add(1)
			continue
		}
		e.cpu, _ = r.cpu() // without a process nobody waits for the event
		r.events <- e
	}
}

// wait waits until the program has printed a mark, and returns an error if that takes long.
func (r *runningProgram) wait(ctx context.Context, mark string) (event, error) {
	ctx, cancel := context.WithTimeout(ctx, maxStepTime)
	defer cancel()
	for {
		select {
		case e := <-r.events:
			if e.Mark == mark {
				return e, nil
			}
		case <-ctx.Done():
			return event{}, fmt.Errorf("it has not printed %q: %w\n%s", mark, ctx.Err(), r.log)
		case <-r.process.Done():
			return event{}, fmt.Errorf("it ended before it printed %q: %w\n%s", mark, r.process.Err(), r.log)
		}
	}
}

// kill ends the program.
func (r *runningProgram) kill() {
	r.process.Stop(syscall.SIGKILL, false, time.Second)
	for _, parent := range []string{"", "memory/", "cpu/"} {
		_ = os.Remove(groupRoot + parent + r.group) // most do not exist, and an empty group costs nothing
	}
}

// cpu returns the user and system time that the program has used, in nanoseconds and not in ticks. The
// clock of another process is described in clock_getcpuclockid(3).
func (r *runningProgram) cpu() (time.Duration, error) {
	const perProcess = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^r.process.Pid()<<3|perProcess), &t); err != nil {
		return 0, fmt.Errorf("read the processor time of the program: %w", err)
	}
	return time.Duration(t.Nano()) - r.startCPU, nil
}

// groupPeak returns the highest memory of the control group so far, and 0 without a group.
func (r *runningProgram) groupPeak() (bytes float64) {
	for _, file := range []string{r.group + "/memory.peak", "memory/" + r.group + "/memory.max_usage_in_bytes"} {
		text, _ := os.ReadFile(groupRoot + file)
		_, _ = fmt.Sscan(string(text), &bytes)
	}
	return bytes
}

// memory returns a figure of the memory of the program, such as VmHWM, in bytes.
func (r *runningProgram) memory(name string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Pid()))
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		return 0, fmt.Errorf("the kernel reports no %s", name)
	}
	kilobytes, err := strconv.ParseFloat(string(match[1]), 64)
	return 1024 * kilobytes, err
}
