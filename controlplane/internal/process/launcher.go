// Package process starts, watches and ends child processes, so that none outlives this
// one.
package process

import (
	"os/exec"
	"runtime"
)

// Launcher starts processes. On Linux the kernel kills a child when the *thread* that
// started it ends, and the Go runtime ends threads as it likes, so all children are
// started from one thread which lives as long as the launcher.
type Launcher struct {
	launches chan launch
	done     chan struct{}
}

type launch struct {
	cmd    *exec.Cmd
	result chan<- error
}

// NewLauncher returns a launcher, whose Close the caller has to call.
func NewLauncher() *Launcher {
	l := &Launcher{launches: make(chan launch), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *Launcher) run() {
	defer close(l.done)
	// Never unlocked: the thread is to end with this goroutine and not before.
	runtime.LockOSThread()
	for request := range l.launches {
		request.result <- request.cmd.Start()
	}
}

// start runs cmd.Start on the launcher's thread.
func (l *Launcher) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	result := make(chan error)
	l.launches <- launch{cmd: cmd, result: result}
	return <-result
}

// Close ends the launcher's thread and with it, on Linux, every child that still runs.
// Nothing may be started during or after Close.
func (l *Launcher) Close() {
	close(l.launches)
	<-l.done
}
