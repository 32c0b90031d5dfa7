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
	// kind is what the run tries. Its faults have this kind, if there are any.
	kind faults.Kind
	// changed is what of the samples the user changes: the path of a field, or a text such as "the samples" for more. It
	// is empty if the user makes the steps of the exploration.
	changed string
	// transitionSteps are the steps in which the run makes a transition.
	transitionSteps []int
}

// changesSamples reports whether the user changes the samples. By default the state after each step is then compared
// with that of a program that has seen only the objects of the step, and else with that of the references.
func (j job) changesSamples() bool { return j.changed != "" }

// String returns the job in a line.
func (j job) String() string {
	for _, f := range j.schedule.Faults {
		return f.String()
	}
	if j.changesSamples() {
		return string(j.kind) + " of " + j.changed
	}
	return string(j.kind)
}

// withoutRefused returns the run without the step of an error. It reports whether the error is a refusal of the values
// of that step. A dry run does not show that the server refuses the way from one value to the next.
func (j job) withoutRefused(err error) (job, bool) {
	failed, ok := errors.AsType[*stepError](err)
	if !ok || !j.changesSamples() || failed.index == 0 || !kube.IsInvalid(failed) {
		return j, false
	}
	j.schedule.Steps = slices.Delete(slices.Clone(j.schedule.Steps), failed.index, failed.index+1)
	var steps []int
	for _, step := range j.transitionSteps {
		switch {
		case step > failed.index:
			steps = append(steps, step-1)
		case step < failed.index:
			steps = append(steps, step)
		}
	}
	j.transitionSteps = steps
	return j, true
}

// splitJobs returns the jobs that share the control plane, and the jobs with the control plane to themselves.
func splitJobs(jobs []job) (shared, alone []job) {
	for _, j := range jobs {
		if j.schedule.Faults.NeedsOwnControlPlane() {
			alone = append(alone, j)
		} else {
			shared = append(shared, j)
		}
	}
	return shared, alone
}

// makeRunFunc makes the run of a job. isMore is true for a run that was not planned, for the rest of the budget.
type makeRunFunc func(ctx context.Context, j job, isMore bool) error

// runJobs makes the runs of a queue, parallel runs at a time. For 0 the number follows the load. It begins no run after
// a time, unless the time is zero. It reports whether all planned runs were made. The first error of a run ends the
// others.
func runJobs(
	ctx context.Context, queue *jobQueue, parallel int, until time.Time, makeRun makeRunFunc,
) (isComplete bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loadCtx, stopLoad := context.WithCancel(ctx)
	limiter := newRunLimiter(parallel)
	var load loadMeter
	var adjusting, running sync.WaitGroup
	adjusting.Go(func() { limiter.adjustToLoad(loadCtx, load.measure) })
	begin := func() bool {
		if !limiter.acquire(ctx) {
			return false
		}
		isInTime := until.IsZero() || time.Now().Before(until)
		j, isMore, isLeft := job{}, false, false
		if isInTime {
			j, isMore, isLeft = queue.next()
		}
		if !isLeft {
			limiter.release()
			return false
		}
		running.Go(func() {
			defer limiter.release()
			if err := makeRun(ctx, j, isMore); err != nil {
				cancel(err)
			}
		})
		return true
	}
	beginAll := func() (count int) {
		for begin() {
			count++
		}
		return count
	}
	for beginAll() > 0 {
		running.Wait() // a run that has missed its fault may make another one due
	}
	running.Wait()
	stopLoad()
	adjusting.Wait()
	err = context.Cause(ctx)
	return queue.plannedCount() == 0 && err == nil, err
}
