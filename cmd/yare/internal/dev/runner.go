package dev

import (
	"os"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// minStableRun is how long an operator must have run so that the next pause is firstPause.
	minStableRun = time.Minute
	// stopGrace is how long an operator may take to end.
	stopGrace = 15 * time.Second
)

// runner runs the operator, one process at a time. One goroutine uses it.
type runner struct {
	// args are the arguments of the operator.
	args       []string
	kubeconfig string
	// isVerbose is true if the log of the operator is shown in full.
	isVerbose bool
	// relay forwards the calls of webhooks. It may be nil.
	relay *webhookRelay
	// page passes requests on to the live page of the operator. It may be nil.
	page *livePage
	view *logView
	// binary is the binary of current, the process that runs since started. current is nil if no operator runs.
	binary  string
	current *process.Process
	started time.Time
	// pause is the last pause before a start after the operator had ended by itself.
	pause time.Duration
}

// start starts the binary, and stops the operator that ran before.
func (r *runner) start(binary string) error {
	r.stop()
	// The output of the operator is the terminal itself, so that it writes as it would without yare. Its log
	// is shown in short.
	view := newLogView(os.Stderr, r.isVerbose)
	r.relay.resume()
	p, err := process.Operator{
		Path: binary, Args: r.args, Kubeconfig: r.kubeconfig, Env: append(r.relay.environment(), r.page.environment()...),
		Stdout: os.Stdout, Stderr: view,
	}.Start()
	if err != nil {
		return err
	}
	r.binary, r.current, r.started, r.view = binary, p, time.Now(), view
	return nil
}

// stop asks the operator to end, and waits for it.
func (r *runner) stop() {
	if r.current != nil {
		r.relay.pause()
		r.current.Stop(syscall.SIGTERM, false, stopGrace)
		r.view.flush()
		r.current = nil
	}
}

// isRunning reports whether the operator runs.
func (r *runner) isRunning() bool { return r.current != nil }

// ended returns a channel that is closed when the operator ends by itself. It returns nil if no
// operator runs.
func (r *runner) ended() <-chan struct{} {
	if r.current == nil {
		return nil
	}
	return r.current.Done()
}

// recordEnd records that the operator ended by itself. It returns the pause before the next start,
// and how the operator ended.
func (r *runner) recordEnd() (pause time.Duration, how error) {
	how = r.current.Err()
	r.view.flush()
	if time.Since(r.started) >= minStableRun {
		r.pause = 0
	}
	r.current = nil
	r.pause = min(max(2*r.pause, firstPause), longestPause)
	return r.pause, how
}
