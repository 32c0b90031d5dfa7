package explore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// splitJobs returns the jobs that share the control plane, and the jobs that need it for themselves.
func splitJobs(jobs []job) (shared, alone []job) {
	for _, j := range jobs {
		if faults.IsAlone(j.schedule.Faults) {
			alone = append(alone, j)
		} else {
			shared = append(shared, j)
		}
	}
	return shared, alone
}

// sharedBudget returns the part of the budget for the runs that share the control plane.
func (e *explorer) sharedBudget(alone []job) time.Duration {
	if len(alone) == 0 {
		return e.options.Budget
	}
	return e.options.Budget * 2 / 3
}

// runAlone makes the runs that need the control plane for themselves, one after the other, until the
// budget ends.
func (e *explorer) runAlone(ctx context.Context, jobs []job, began time.Time) error {
	for _, j := range jobs {
		if ctx.Err() != nil || e.options.Budget > 0 && time.Since(began) > e.options.Budget {
			e.coverage.Complete = false
			return nil
		}
		if err := e.makeRun(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// patienceOf returns how long a run waits. The controllers of the control plane back off after an outage.
func (e *explorer) patienceOf(j job) patience {
	if faults.StopsComponents(j.schedule.Faults) {
		return e.patient()
	}
	return e.wait
}

// waitUntilServing waits until the API server answers a read that needs etcd.
func (r *run) waitUntilServing(ctx context.Context) error {
	for {
		_, err := kube.All[corev1.Namespace](r.explorer.client).Get(ctx, r.namespace)
		if err == nil {
			r.recordEvent(finding.Event{Lane: finding.Server, Text: "serves again"})
			return nil
		}
		if waited := clock.SleepReal(ctx, pollInterval); waited != nil {
			return fmt.Errorf("the control plane does not serve again within %s: %w", faults.MaxReturn, err)
		}
	}
}

// catchUp waits until the recorder has all objects that the server has. The server may be away for a time in a
// run that stops components of the control plane.
func (r *run) catchUp(ctx context.Context) error {
	written := r.writtenResources()
	err := r.recording.CatchUp(ctx, written...)
	if !faults.StopsComponents(r.schedule.Faults) {
		return err
	}
	for until := time.Now().Add(faults.MaxReturn); err != nil && time.Now().Before(until); {
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
		err = r.recording.CatchUp(ctx, written...)
	}
	return err
}
