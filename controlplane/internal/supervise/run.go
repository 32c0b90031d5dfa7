package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yare-go/yare/controlplane/internal/process"
)

const (
	// firstDelay is the wait before the first restart. The wait doubles with each restart in a row.
	firstDelay = 250 * time.Millisecond
	// giveUpAfter is how many ends in a row are too many.
	giveUpAfter = 5
	// minReadyTime is how long a component must have been ready for its next end to be the first of a
	// row. A component that is killed again and again does not fail, so the time is short. A component that ends right
	// after it became ready fails, so the time is not zero.
	minReadyTime = time.Second
)

// run is the state of Component.Run. Only the goroutine of Run touches it.
type run struct {
	*Component
	// current is the process of the component. It is nil while no process runs.
	current *process.Process
	// readySince is when current became ready. It is zero before.
	readySince time.Time
	isPaused   bool
	// failureCount is the number of unexpected ends in a row.
	failureCount int
	// restart receives a value when the component must be started again. It is nil if no restart is planned.
	restart <-chan time.Time
}

// step carries out the next command, restarts the component, or records its unexpected end, whichever is due first. It
// returns an error when Run must end.
func (r *run) step(ctx context.Context) error {
	if c, found := r.dequeue(); found && ctx.Err() == nil {
		pid, err := r.carryOut(ctx, c.verb)
		c.answer(pid, err)
		if c.verb == refresh {
			return r.recordStart(ctx, err) // the user did not ask for it, so nobody else handles it
		}
		return nil
	} else if found {
		c.answer(0, r.unsupervised())
		return context.Canceled
	}
	var exited <-chan struct{}
	if r.current != nil {
		exited = r.current.Exited()
	}
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-r.wake:
		return nil
	case <-exited:
		return r.recordUnexpectedEnd(r.exitError())
	case <-r.restart:
		return r.recordStart(ctx, r.start(ctx))
	}
}

// recordStart records the result err of a start that no user asked for. It plans another start of a component that has
// ended again. It returns any other error.
func (r *run) recordStart(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return r.recordUnexpectedEnd(exit)
	}
	return fmt.Errorf("restart %s: %w", r.spec.Name, err)
}

// finish ends the component and rejects the remaining commands.
func (r *run) finish(grace time.Duration) {
	if r.current != nil {
		r.current.Stop(grace)
		r.current = nil
	}
	r.rejectCommands()
}

// carryOut carries out a command, and returns the process ID of the component if it runs then.
func (r *run) carryOut(ctx context.Context, verb Verb) (pid int, err error) {
	switch verb {
	case Start:
		if r.current != nil {
			return 0, fmt.Errorf("%s is running already", r.spec.Name)
		}
		err = r.start(ctx)
	case Stop, Kill:
		err = r.halt(verb)
	case Restart:
		if r.current != nil {
			err = r.halt(Stop)
		}
		if err == nil {
			err = r.start(ctx)
		}
	case refresh:
		if r.current == nil && r.restart == nil || r.isPaused {
			return 0, nil
		}
		if r.current != nil {
			r.current.Kill()
			r.current = nil
		}
		err = r.start(ctx)
	case Pause, Resume:
		err = r.setPaused(verb == Pause)
	default:
		err = fmt.Errorf("unknown verb %q", verb)
	}
	if r.current != nil {
		pid = r.current.PID()
	}
	return pid, err
}

// start starts the component and returns when it is ready.
func (r *run) start(ctx context.Context) error {
	r.restart = nil
	current, err := r.launcher.Start(r.spec.Process)
	if err != nil {
		return fmt.Errorf("%s: %w", r.spec.Name, err)
	}
	r.current, r.readySince, r.isPaused = current, time.Time{}, false

	readyCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- r.awaitReady(readyCtx, current) }()
	select {
	case err = <-ready:
	case <-current.Exited():
		cancel()
		<-ready
		err = r.exitError()
		r.current = nil
		return err
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s was not ready after %v: %w; the end of its log:\n%s",
			r.spec.Name, startTimeout, err, current.Log().Tail(tailLines))
		current.Kill()
		r.current = nil
	}
	if err == nil {
		r.readySince = time.Now()
	}
	return err
}

// awaitReady waits until the component is ready.
func (r *run) awaitReady(ctx context.Context, current *process.Process) error {
	if r.spec.Ready != nil {
		return r.spec.Ready(ctx)
	}
	select {
	case <-current.Ready():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// halt stops or kills the component by the wish of the user, and cancels a planned restart.
func (r *run) halt(verb Verb) error {
	if r.current == nil && r.restart == nil {
		return fmt.Errorf("%s is not running", r.spec.Name)
	}
	r.restart, r.failureCount = nil, 0
	if r.current == nil {
		return nil
	}
	if verb == Kill {
		r.current.Kill()
	} else {
		r.current.Stop(stopGrace)
	}
	r.current = nil
	return nil
}

// setPaused pauses or resumes the component.
func (r *run) setPaused(pause bool) error {
	switch {
	case r.current == nil:
		return fmt.Errorf("%s is not running", r.spec.Name)
	case pause == r.isPaused:
		return fmt.Errorf("%s is %s", r.spec.Name, map[bool]string{true: "paused already", false: "not paused"}[pause])
	}
	signal := r.current.Resume
	if pause {
		signal = r.current.Pause
	}
	if err := signal(); err != nil {
		return fmt.Errorf("signal %s: %w", r.spec.Name, err)
	}
	r.isPaused = pause
	return nil
}

// recordUnexpectedEnd reports the end of the component and plans its restart. It returns an error if the component has
// ended too often in a row. For example, a component that ends four times at once is started again after 250 ms, 500
// ms, 1 s and 2 s. The fifth end is an error.
func (r *run) recordUnexpectedEnd(exit *ExitError) error {
	r.current = nil
	r.reportExit(exit)
	if !r.readySince.IsZero() && time.Since(r.readySince) >= minReadyTime {
		r.failureCount = 0
	}
	r.failureCount++
	if r.failureCount >= giveUpAfter {
		return fmt.Errorf("%d times in a row, without being ready for %v in between: %w", r.failureCount, minReadyTime, exit)
	}
	r.restart = time.After(firstDelay << (r.failureCount - 1))
	return nil
}

// exitError returns the error of the process that has ended.
func (r *run) exitError() *ExitError {
	log := r.current.Log()
	return &ExitError{
		Component: r.spec.Name,
		Cause:     r.current.Err(),
		Log:       log.Tail(tailLines),
		PortTaken: log.Contains("address already in use"),
	}
}
