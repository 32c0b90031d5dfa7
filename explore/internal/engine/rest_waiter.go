package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// restWaiter waits until a run has come to rest.
type restWaiter struct {
	limits waitLimits
	// operator is the name of the program.
	operator string
	// faults are the faults of the run.
	faults   faults.Faults
	replicas *replicas
	quiet    *quietMeter
	// catchUp brings the recording of the run up to the present: see [stateReader.catchUp].
	catchUp func(ctx context.Context) error
	// isDisturbed reports whether a fault disturbs the connections to an external system.
	isDisturbed func() bool
	// requests returns the requests of the program so far.
	requests func() []proxy.RequestRecord
	activity *activity
	trace    *trace
	output   *output
	result   *runResult

	// preventions counts the faults because of which the run is not at rest.
	preventions atomic.Int32
}

// preventRest calls work. The run is not at rest before work returns.
func (w *restWaiter) preventRest(work func() error) error {
	w.preventions.Add(1)
	defer w.preventions.Add(-1)
	return work()
}

// exitLines is how many lines of the log are shown for a program that ended by itself.
const exitLines = 20

// waitForRest returns when the run has come to rest. It records a verdict if the program has ended by itself, or if the
// run does not come to rest in time.
func (w *restWaiter) waitForRest(ctx context.Context) error {
	until := time.Now().Add(w.limits.rest)
	w.activity.setWait("rest", until)
	defer w.activity.endWait()
	for {
		isPrevented, err := w.superviseProgram(ctx)
		if err != nil {
			return err
		}
		if err := w.replicas.exitError(); err != nil {
			w.recordVerdict(finding.Exited, fmt.Sprintf("the program ended by itself: %v; its last lines: %s",
				err, w.output.last(exitLines)))
			return nil
		}
		if isPrevented && time.Now().Before(until) {
			w.quiet.recordAct()
			if err := clock.SleepReal(ctx, pollInterval); err != nil {
				return err
			}
			continue
		}
		isAtRest, quiet, err := w.isAtRest(ctx)
		if err != nil || isAtRest {
			return err
		}
		if time.Now().After(until) {
			if w.faults.HasFaultBeyond(w.trace.currentStep()) {
				return nil // the program tries the denied write again and again
			}
			w.recordVerdict(finding.Busy, fmt.Sprintf("the run does not come to rest within %s: the last request was %s",
				w.limits.rest, lastRequest(w.requests())))
			return nil
		}
		if err := clock.SleepReal(ctx, min(max(w.limits.window-quiet, 10*time.Millisecond), w.limits.window)); err != nil {
			return err
		}
	}
}

// superviseProgram starts replicas again that have ended and may start again. It reports whether something else than
// requests keeps the run from its rest.
func (w *restWaiter) superviseProgram(ctx context.Context) (isPrevented bool, err error) {
	if err := w.replicas.supervise(ctx); err != nil {
		return false, err
	}
	isWaiting, err := w.replicas.restartFailedStarts()
	return isWaiting || w.isDisturbed() || w.preventions.Load() > 0 || w.replicas.isWorking() ||
		w.replicas.isRestPrevented(), err
}

// isAtRest reports whether nothing has happened for the window of the limits, also after the recording was brought up
// to the present. It returns for how long nothing has happened.
func (w *restWaiter) isAtRest(ctx context.Context) (isAtRest bool, quiet time.Duration, err error) {
	quiet, isBusy := w.quiet.measure()
	if isBusy || quiet < w.limits.window {
		return false, quiet, nil
	}
	if err := w.catchUp(ctx); err != nil {
		return false, quiet, err
	}
	quiet, isBusy = w.quiet.measure()
	return !isBusy && quiet >= w.limits.window, quiet, nil
}

// recordVerdict records a verdict about the program.
func (w *restWaiter) recordVerdict(v finding.Verdict, reason string) {
	w.result.recordVerdict(v, w.trace.currentStep(), []finding.Difference{{Object: w.operator, Reason: reason}})
}

// lastRequest returns the last one of the requests in a line.
func lastRequest(requests []proxy.RequestRecord) string {
	if len(requests) == 0 {
		return "none"
	}
	return requests[len(requests)-1].Point.String()
}
