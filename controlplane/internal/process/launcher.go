// Package process starts, watches and ends child processes, so that none outlives this
// one.
package process

import (
	"os/exec"
	"runtime"
)

// Launcher starts processes. On Linux the kernel kills a child when the *thread* that started it ends, and
// the Go runtime ends threads as it likes. So all children are started from one thread, which ends with the
// launcher.
type Launcher struct {
	launches chan request
	done     chan struct{}
}

// request is a request to start a command.
type request struct {
	cmd    *exec.Cmd
	result chan<- error
}

// NewLauncher returns a launcher, whose Close the caller has to call.
func NewLauncher() *Launcher {
	l := &Launcher{launches: make(chan request), done: make(chan struct{})}
	go l.run()
	return l
}

// Start starts a child.
func (l *Launcher) Start(spec Spec) (*Process, error) { return start(spec, l.launch) }

// run starts one process after the other, all from its thread.
func (l *Launcher) run() {
	defer close(l.done)
	// Never unlocked: the thread is to end with this goroutine and not before.
	runtime.LockOSThread()
	for r := range l.launches {
		r.result <- r.cmd.Start()
	}
}

// launch runs cmd.Start on the launcher's thread.
func (l *Launcher) launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	result := make(chan error)
	l.launches <- request{cmd: cmd, result: result}
	return <-result
}

// Close ends the launcher's thread and with it, on Linux, every child that still runs.
// Nothing may be started during or after Close.
func (l *Launcher) Close() {
	close(l.launches)
	<-l.done
}
