package yaretest

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// Process is a running program, such as an operator. Its output is kept, by lines.
type Process struct {
	process *process.Process
	command string
	stdout  *lines
	stderr  *lines
}

// Run starts a program that finds the cluster by the given kubeconfig, such as the kubeconfig of a
// [ServiceAccount]. A program that still runs at the end of t is killed. As with [RunParts], an operator
// fails requests that none of its parts declares.
func Run(t testing.TB, kubeconfig, path string, args ...string) *Process {
	t.Helper()
	p := &Process{command: strings.Join(append([]string{path}, args...), " "), stdout: newLines(), stderr: newLines()}
	var err error
	p.process, err = process.Operator{
		Path: path, Args: args, Kubeconfig: kubeconfig, Stdout: p.stdout, Stderr: p.stderr,
	}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s\nand logged:\n%s", p.command,
				strings.Join(p.Lines(), "\n"), strings.Join(p.Log(), "\n"))
		}
	})
	return p
}

// Lines returns the lines on standard output so far.
func (p *Process) Lines() []string { return p.stdout.all() }

// Log returns the lines on standard error so far.
func (p *Process) Log() []string { return p.stderr.all() }

// WaitForLine waits until the program has written exactly this line to standard output. It fails t if
// the program ends without the line, or when the timeout is over, as with [Eventually].
func (p *Process) WaitForLine(t testing.TB, line string) {
	t.Helper()
	p.wait(t, p.stdout, "the line "+line, func(l string) bool { return l == line })
}

// WaitForLog waits until the program has written a line that contains part to standard error. It fails
// t if the program ends without such a line, or when the timeout is over, as with [Eventually].
func (p *Process) WaitForLog(t testing.TB, part string) {
	t.Helper()
	p.wait(t, p.stderr, "a log line with "+part, func(l string) bool { return strings.Contains(l, part) })
}

func (p *Process) wait(t testing.TB, from *lines, what string, match func(string) bool) {
	t.Helper()
	timeout := timeoutOf(t)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		all, more := from.snapshot()
		if slices.ContainsFunc(all, match) {
			return
		}
		select {
		case <-more:
		case <-p.process.Done():
			if !slices.ContainsFunc(from.all(), match) {
				t.Fatalf("%s ended (%v) without %s", p.command, p.process.Err(), what)
			}
			return
		case <-timer.C:
			t.Fatalf("%s wrote nothing within %s that matches %s", p.command, timeout, what)
		}
	}
}

// Signal sends a signal. It does nothing if the process has ended.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("send %s: %v", s, err)
	}
}

// Wait waits for the end of the process and returns its exit status, which is -1 if a signal
// ended it. It fails t when the timeout is over, as with [Eventually].
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	timeout := timeoutOf(t)
	select {
	case <-p.process.Done():
	case <-time.After(timeout):
		t.Fatalf("%s did not end within %s", p.command, timeout)
	}
	return p.process.ExitStatus()
}

// Interrupt stops the process as Ctrl-C does, waits for its end and returns its exit status.
func (p *Process) Interrupt(t testing.TB) int {
	t.Helper()
	p.Signal(t, os.Interrupt)
	return p.Wait(t)
}

// Kill ends the process as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	p.process.Stop(syscall.SIGKILL, false, time.Minute)
}

// lines is a writer that keeps what is written to it, by lines.
type lines struct {
	mu sync.Mutex
	// complete holds the lines, and rest the beginning of the next one.
	complete []string
	rest     []byte
	// more is closed with the next line, and then made anew.
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, data...)
	before := len(l.complete)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.complete, l.rest = append(l.complete, string(line)), rest
	}
	if len(l.complete) > before {
		close(l.more)
		l.more = make(chan struct{})
	}
	return len(data), nil
}

// snapshot returns all lines so far, and a channel that is closed with the next line.
func (l *lines) snapshot() ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.complete), l.more
}

func (l *lines) all() []string {
	all, _ := l.snapshot()
	return all
}
