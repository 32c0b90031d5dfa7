// Package process runs child processes that cannot outlive their parent unnoticed.
//
// A child gets a process group of its own, so that a terminal's Ctrl-C reaches only the
// parent. The parent then ends its children in the order that it wants. On Linux the kernel
// sends the child a signal when the parent dies. Elsewhere a child must read its standard input, and end
// at the end of the input.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/access"
)

// Process is a running child.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	// err is the result of Wait. It is set before done is closed.
	err error
}

// Start starts cmd. On Linux the child gets deathSignal when this process dies. 0 means no signal. The child may get
// the signal more than once: the kernel sends it when the thread that started the child ends, and hands the child to
// another thread, which may be ending too.
func Start(cmd *exec.Cmd, deathSignal syscall.Signal) (*Process, error) {
	cmd.SysProcAttr = attributes(deathSignal)
	if cmd.WaitDelay == 0 {
		// A grandchild that inherited our pipes must not keep Wait from returning.
		cmd.WaitDelay = 2 * time.Second
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Linux sends the death signal when the *thread* that started the child ends, so
		// this thread is kept for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Pid returns the process ID of the child, which is the ID of its group too.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended: nil for status 0. Before the end of the child it returns nil.
func (p *Process) Err() error {
	select {
	case <-p.done:
		if errors.Is(p.err, exec.ErrWaitDelay) {
			return nil // it ended well, and a grandchild still held the pipe
		}
		return p.err
	default:
		return nil
	}
}

// ExitStatus returns the exit status of the child, which has ended. It is -1 if a signal ended the child.
func (p *Process) ExitStatus() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends a signal to the child alone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Stop sends sig to the child, and waits for the end of the child. If the child has not ended after the grace period,
// Stop kills its whole group. If toGroup is true, sig goes to the whole group and not to the child alone.
func (p *Process) Stop(sig syscall.Signal, toGroup bool, grace time.Duration) {
	select {
	case <-p.done:
		return
	default:
	}
	if toGroup {
		_ = syscall.Kill(-p.Pid(), sig)
	} else {
		_ = p.Signal(sig)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	// The child has not been reaped yet, so the id of its group still belongs to it.
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	<-p.done
}

// Run runs cmd to its end. If ctx ends before, Run interrupts the child's group, kills the group after five seconds,
// and returns the error of ctx. A go command that is interrupted removes its work folder.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	p, err := Start(cmd, syscall.SIGTERM)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		p.Stop(syscall.SIGINT, true, 5*time.Second)
		return context.Cause(ctx)
	}
}

// Operator describes the process of an operator that is developed, tested or measured.
type Operator struct {
	Path string
	Args []string
	// Kubeconfig is the path of the kubeconfig by which the operator finds its cluster.
	Kubeconfig string
	// Env is added to the environment of this process.
	Env []string
	// Stdout and Stderr receive the output. They may be nil.
	Stdout, Stderr io.Writer
}

// Start starts the operator. An operator made with yare fails requests that none of its parts declares.
// The operator is killed when this process dies.
func (o Operator) Start() (*Process, error) {
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+o.Kubeconfig, access.CheckVariable+"=1"), o.Env...)
	cmd.Stdout, cmd.Stderr = o.Stdout, o.Stderr
	p, err := Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start the operator %s: %w", o.Path, err)
	}
	return p, nil
}
