package dev

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

const (
	firstPause = time.Second
	longest    = 30 * time.Second
	// An operator that ran this long was well: its next end is a new beginning.
	wellAfter = time.Minute
	// How long an operator may take to end its work.
	stopGrace = 15 * time.Second
)

// A runner runs the operator, one process at a time. It is used by one goroutine.
type runner struct {
	args       []string // of the operator
	kubeconfig string
	binary     string
	current    *process.Process
	since      time.Time
	pause      time.Duration // before the next start, if it ends by itself
}

// start starts the binary, and stops what ran before.
func (r *runner) start(binary string) error {
	r.stop()
	cmd := exec.Command(binary, r.args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	// Its output is the terminal itself, so that it writes as it would without us.
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	p, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	r.binary, r.current, r.since = binary, p, time.Now()
	return nil
}

// stop asks the operator to end, and waits for it.
func (r *runner) stop() {
	if r.current != nil {
		r.current.Stop(syscall.SIGTERM, false, stopGrace)
		r.current = nil
	}
}

func (r *runner) running() bool { return r.current != nil }

// ended is closed when the operator ends by itself; nil, which never is, if none runs.
func (r *runner) ended() <-chan struct{} {
	if r.current == nil {
		return nil
	}
	return r.current.Done()
}

// reap takes note of an operator that ended by itself: after what pause it is to be
// started again, and how it did.
func (r *runner) reap() (pause time.Duration, how error) {
	how = r.current.Err()
	if time.Since(r.since) >= wellAfter {
		r.pause = 0
	}
	r.current = nil
	r.pause = min(max(2*r.pause, firstPause), longest)
	return r.pause, how
}
