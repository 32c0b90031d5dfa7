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
	// settled is how long a member must have been ready for its next end to be the first of a
	// row. It is short, because a component that is killed again and again does not fail. It is
	// not zero, because a component that ends right after it became ready does.
	settled = time.Second
)

// run is the state of Member.Run. Only the goroutine of Run touches it.
type run struct {
	*Member
	current  *process.Process
	ready    time.Time // when current became ready; zero before that
	paused   bool
	failures int              // unexpected ends in a row
	restart  <-chan time.Time // set while waiting to restart
}

// step handles the next thing that happens.
func (r *run) step(ctx context.Context) error {
	if c, found := r.dequeue(); found && ctx.Err() == nil {
		pid, err := r.carryOut(ctx, c.verb)
		c.answer(pid, err)
		if c.verb == refresh {
			return r.afterStart(ctx, err) // the user did not ask for it, so nobody else handles it
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
		return r.unexpected(r.exitError())
	case <-r.restart:
		return r.afterStart(ctx, r.start(ctx))
	}
}

// afterStart handles the result of a start that no user asked for. A member that ended is
// started again; any other error is returned.
func (r *run) afterStart(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return r.unexpected(exit)
	}
	return fmt.Errorf("restart %s: %w", r.spec.Name, err)
}

// finish ends the member and rejects the remaining commands.
func (r *run) finish(grace time.Duration) {
	if r.current != nil {
		r.current.Stop(grace)
		r.current = nil
	}
	r.rejectCommands()
}

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
		if r.current == nil && r.restart == nil || r.paused {
			return 0, nil
		}
		if r.current != nil {
			r.current.Kill()
			r.current = nil
		}
		err = r.start(ctx)
	case Pause, Resume:
		err = r.freeze(verb == Pause)
	default:
		err = fmt.Errorf("unknown verb %q", verb)
	}
	if r.current != nil {
		pid = r.current.PID()
	}
	return pid, err
}

// start starts the member and returns when it is ready.
func (r *run) start(ctx context.Context) error {
	r.restart = nil
	current, err := r.launcher.Start(r.spec.Process)
	if err != nil {
		return fmt.Errorf("%s: %w", r.spec.Name, err)
	}
	r.current, r.ready, r.paused = current, time.Time{}, false

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
		r.ready = time.Now()
	}
	return err
}

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

func (r *run) halt(verb Verb) error {
	if r.current == nil && r.restart == nil {
		return fmt.Errorf("%s is not running", r.spec.Name)
	}
	r.restart = nil
	if r.current == nil {
		return nil
	}
	if verb == Kill {
		r.current.Kill()
	} else {
		r.current.Stop(stopGrace)
	}
	r.current = nil
	r.failures = 0
	return nil
}

func (r *run) freeze(pause bool) error {
	switch {
	case r.current == nil:
		return fmt.Errorf("%s is not running", r.spec.Name)
	case pause == r.paused:
		return fmt.Errorf("%s is %s", r.spec.Name, map[bool]string{true: "paused already", false: "not paused"}[pause])
	}
	signal := r.current.Resume
	if pause {
		signal = r.current.Pause
	}
	if err := signal(); err != nil {
		return fmt.Errorf("signal %s: %w", r.spec.Name, err)
	}
	r.paused = pause
	return nil
}

// unexpected reports the end of the member and schedules its restart, unless it ended
// too often in a row.
func (r *run) unexpected(exit *ExitError) error {
	r.current = nil
	r.exited(exit)
	if !r.ready.IsZero() && time.Since(r.ready) >= settled {
		r.failures = 0
	}
	r.failures++
	if r.failures >= giveUpAfter {
		return fmt.Errorf("%d times in a row, without being ready for %v in between: %w", r.failures, settled, exit)
	}
	r.restart = time.After(firstDelay << (r.failures - 1))
	return nil
}

func (r *run) exitError() *ExitError {
	log := r.current.Log()
	return &ExitError{
		Member:    r.spec.Name,
		Cause:     r.current.Err(),
		Log:       log.Tail(tailLines),
		PortTaken: log.Contains("address already in use"),
	}
}
