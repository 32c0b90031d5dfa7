package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// job is one planned run.
type job struct {
	schedule finding.Schedule
	// kind is the kind of the fault, or [faults.Transition].
	kind faults.Kind
	// field is the field of a transition, or what else of the samples the user changes.
	field string
	// changed are the steps in which the run makes a transition.
	changed []int
}

// String returns the job in a line.
func (j job) String() string {
	if j.field != "" {
		return string(j.kind) + " of " + j.field
	}
	for _, f := range j.schedule.Faults {
		return f.String()
	}
	return string(j.kind)
}

// withoutRefused returns the run without the step whose values the server has refused. It reports whether that is the
// error. A dry run does not show that the server refuses the way from one value to the next.
func (j job) withoutRefused(err error) (job, bool) {
	failed, ok := errors.AsType[*stepError](err)
	if !ok || j.field == "" || failed.index == 0 || !kube.IsInvalid(failed) {
		return j, false
	}
	j.schedule.Steps = slices.Delete(slices.Clone(j.schedule.Steps), failed.index, failed.index+1)
	return j, true
}

// splitJobs returns the jobs that share the control plane, and the jobs with the control plane to themselves.
func splitJobs(jobs []job) (shared, alone []job) {
	for _, j := range jobs {
		if faults.NeedsOwnControlPlane(j.schedule.Faults) {
			alone = append(alone, j)
		} else {
			shared = append(shared, j)
		}
	}
	return shared, alone
}

// makeRunFunc makes the run of a job.
type makeRunFunc func(context.Context, job) error

// runJobs makes the runs of jobs, parallel runs at a time. For 0 the number follows the load. It begins no run after a
// time, unless the time is zero. It reports whether all runs were made. The first error of a run ends the others.
func runJobs(ctx context.Context, jobs []job, parallel int, until time.Time, makeRun makeRunFunc) (isComplete bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loadCtx, stopLoad := context.WithCancel(ctx)
	limiter := newRunLimiter(parallel)
	var load loadMeter
	var adjusting, running sync.WaitGroup
	adjusting.Go(func() { limiter.adjustToLoad(loadCtx, load.measure) })
	isComplete = true
	for _, j := range jobs {
		if !limiter.acquire(ctx) {
			break
		}
		if isComplete = until.IsZero() || time.Now().Before(until); !isComplete {
			limiter.release()
			break
		}
		running.Go(func() {
			defer limiter.release()
			if err := makeRun(ctx, j); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	stopLoad()
	adjusting.Wait()
	err = context.Cause(ctx)
	return isComplete && err == nil, err
}
