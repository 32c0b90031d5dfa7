package engine

import (
	"context"
	"sync"
	"time"
)

// jobGroup makes runs, some at a time.
type jobGroup struct {
	limiter *runLimiter
	make    func(context.Context, job) error
}

// newJobGroup returns a group that makes parallel runs at a time. For 0 the number follows the load.
func newJobGroup(parallel int, makeRun func(context.Context, job) error) *jobGroup {
	return &jobGroup{newRunLimiter(parallel), makeRun}
}

// run makes the runs of the jobs. It begins no run after a time, unless the time is zero. It reports whether all runs
// were made. The first error of a run ends the others.
func (g *jobGroup) run(ctx context.Context, jobs []job, until time.Time) (isComplete bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loadCtx, stopLoad := context.WithCancel(ctx)
	var load loadMeter
	var adjusting, running sync.WaitGroup
	adjusting.Go(func() { g.limiter.adjustToLoad(loadCtx, load.measure) })
	isComplete = true
	for _, j := range jobs {
		if !g.limiter.acquire(ctx) {
			break
		}
		if isComplete = until.IsZero() || time.Now().Before(until); !isComplete {
			g.limiter.release()
			break
		}
		running.Go(func() {
			defer g.limiter.release()
			if err := g.make(ctx, j); err != nil {
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
