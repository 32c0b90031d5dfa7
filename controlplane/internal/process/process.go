package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/yare-go/yare/controlplane/internal/lifeline"
)

// Spec describes what to start.
type Spec struct {
	Name       string // for people
	Executable string
	Args       []string
	Env        []string  // added to this process's own
	Dir        string    // working directory
	Log        string    // file that standard output and error are appended to
	Copy       io.Writer // if set, gets what the log gets
}

// Process is a child that was started.
type Process struct {
	cmd      *exec.Cmd
	line     *lifeline.Parent
	log      *Log
	ready    chan struct{}
	exited   chan struct{}
	notified chan struct{}
	err      error // set before exited is closed
}

// start starts a child by a function that runs Start of its command.
func start(spec Spec, launch func(*exec.Cmd) error) (*Process, error) {
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(spec.Executable, spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout = log.file
	if spec.Copy != nil {
		cmd.Stdout = io.MultiWriter(log.file, newPrefixed(spec.Copy, spec.Name))
		// A grandchild might hold the pipe open; ours start none.
		cmd.WaitDelay = time.Second
	}
	cmd.Stderr = cmd.Stdout
	line, err := lifeline.Attach(cmd)
	if err != nil {
		log.file.Close()
		return nil, err
	}
	err = launch(cmd)
	line.Started()
	if err != nil {
		line.Close()
		log.file.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Executable, err)
	}
	p := &Process{
		cmd: cmd, line: line, log: log,
		ready: make(chan struct{}), exited: make(chan struct{}), notified: make(chan struct{}),
	}
	go p.awaitReady()
	go p.awaitExit()
	return p, nil
}

func (p *Process) awaitReady() {
	defer close(p.notified)
	if p.line.WaitReady() {
		close(p.ready)
	}
}

// awaitExit ends when the child does: whoever ends the child waits for it.
func (p *Process) awaitExit() {
	p.err = p.cmd.Wait()
	<-p.notified // the child is gone, so its end of the pipe is closed
	p.line.Close()
	p.log.file.Close()
	close(p.exited)
}

// PID returns the child's process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ready returns a channel that is closed when the child reports its readiness.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// Exited returns a channel that is closed when the child has ended and all of its output is
// in its log.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err returns how the child ended. It must not be called before Exited is closed. The error
// is never nil: a child that exits with status 0 has ended unexpectedly too.
func (p *Process) Err() error {
	if p.err == nil {
		return fmt.Errorf("exited with status 0")
	}
	return p.err
}

// Log returns the output of the child since it was started.
func (p *Process) Log() *Log { return p.log }

// Kill ends the child at once and waits for its end.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// Stop asks the child to end, and kills it when the grace period is over.
func (p *Process) Stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT) // a paused child would not receive SIGTERM
	select {
	case <-p.exited:
	case <-time.After(grace):
		p.Kill()
	}
}

// Pause freezes the child until Resume.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused child go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// signal ignores that the child might have ended in between.
func (p *Process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }
