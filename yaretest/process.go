package yaretest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// Process is a running program, such as an operator. What it writes is kept, by lines.
type Process struct {
	cmd     *exec.Cmd
	process *process.Process
	stdout  *lines
	stderr  *lines
}

// patience is how long anything may take that a test waits for.
const patience = time.Minute

// Run starts a program that finds the cluster by KUBECONFIG, as administrator. If it still
// runs at the end of t, it is killed.
func (c *Cluster) Run(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	return Run(t, c.Kubeconfig(), path, args...)
}

// Run starts a program with a kubeconfig of the caller's, such as that of a
// [ServiceAccount]. If it still runs at the end of t, it is killed.
func Run(t testing.TB, kubeconfig, path string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(path, args...), stdout: newLines(), stderr: newLines()}
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	var err error
	if p.process, err = process.Start(p.cmd, syscall.SIGKILL); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s\nand logged:\n%s", strings.Join(p.cmd.Args, " "),
				strings.Join(p.Lines(), "\n"), strings.Join(p.Log(), "\n"))
		}
	})
	return p
}

// Lines are the lines on standard output so far.
func (p *Process) Lines() []string { return p.stdout.all() }

// Log are the lines on standard error so far.
func (p *Process) Log() []string { return p.stderr.all() }

// WaitForLine waits until this very line was written to standard output.
func (p *Process) WaitForLine(t testing.TB, line string) {
	t.Helper()
	p.wait(t, p.stdout, "the line "+line, func(l string) bool { return l == line })
}

// WaitForLog waits until a line with this in it was written to standard error.
func (p *Process) WaitForLog(t testing.TB, part string) {
	t.Helper()
	p.wait(t, p.stderr, "a log line with "+part, func(l string) bool { return strings.Contains(l, part) })
}

func (p *Process) wait(t testing.TB, from *lines, what string, match func(string) bool) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		all, more := from.next()
		if slices.ContainsFunc(all, match) {
			return
		}
		select {
		case <-more:
		case <-p.process.Done():
			if !slices.ContainsFunc(from.all(), match) {
				t.Fatalf("the process ended (%v) without %s", p.process.Err(), what)
			}
			return
		case <-timeout.C:
			t.Fatalf("no sign within %s of %s", patience, what)
		}
	}
}

// Signal sends a signal. That the process has ended already is no error.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("send %s: %v", s, err)
	}
}

// Wait waits for the end, and returns the exit status; that of a process that a signal
// ended is -1.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.process.Done():
	case <-time.After(patience):
		t.Fatalf("it did not end within %s", patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Interrupt stops the process as Ctrl-C does, and returns the exit status.
func (p *Process) Interrupt(t testing.TB) int {
	t.Helper()
	p.Signal(t, os.Interrupt)
	return p.Wait(t)
}

// Kill ends the process as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it has ended already
	<-p.process.Done()
}

// lines is a writer that keeps lines.
type lines struct {
	mu   sync.Mutex
	done []string
	rest []byte
	more chan struct{} // closed with the next line
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, data...)
	before := len(l.done)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.done, l.rest = append(l.done, string(line)), rest
	}
	if len(l.done) > before {
		close(l.more)
		l.more = make(chan struct{})
	}
	return len(data), nil
}

// next are all lines so far, and what is closed when there are more.
func (l *lines) next() ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.done), l.more
}

func (l *lines) all() []string {
	all, _ := l.next()
	return all
}
