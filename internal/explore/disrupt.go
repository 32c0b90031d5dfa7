package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// Plane stops and starts the components of the control plane of an exploration. No other part of an
// exploration, and no other program, uses the control plane during a run that stops a component.
type Plane interface {
	// Kill ends a component as a crash does. The component stays down until StartComponent, which returns
	// when the component is ready.
	Kill(ctx context.Context, component string) error
	StartComponent(ctx context.Context, component string) error
	// Pause freezes a component until Resume.
	Pause(ctx context.Context, component string) error
	Resume(ctx context.Context, component string) error
	// Dir returns the folder of the control plane. The data of etcd is in its subfolder etcd.
	Dir() string
}

// The components that faults stop.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
)

// planeKinds returns the kinds of faults that stop components of the control plane.
func planeKinds() []schedule.Kind {
	return []schedule.Kind{schedule.ServerKilled, schedule.EtcdKilled, schedule.EtcdPaused}
}

const (
	// outage is how long a component that was killed is away, besides its start.
	outage = time.Second
	// pause is how long etcd is stopped.
	pause = 4 * time.Second
	// maxReturn is how long the control plane may take to be back.
	maxReturn = 2 * time.Minute
)

// needsPlane reports whether a schedule stops components of the control plane.
func needsPlane(s schedule.Schedule) bool {
	return isRestored(s) || slices.ContainsFunc(s.Faults, func(f schedule.Fault) bool { return f.Kind.IsOfPlane() })
}

// planePoints is the number of writes at which each kind of fault of the control plane happens.
const planePoints = 2

// planPlane returns the faults of the control plane: at some writes of the references, and after each
// step. All kinds happen, unless the options name some of them.
func (e *explorer) planPlane(points []schedule.Point, has func(schedule.Kind) bool) (all []schedule.Fault) {
	kinds := planeKinds()
	if named := slices.DeleteFunc(planeKinds(), func(k schedule.Kind) bool { return !has(k) }); len(named) > 0 {
		kinds = named
		if e.options.Plane == nil {
			for _, k := range named {
				e.coverage.NotApplicable[k] = "the exploration may not stop components of this control plane; use --plane, or explore.Plane"
			}
		}
	}
	if e.options.Plane == nil {
		return nil
	}
	writes := slices.DeleteFunc(slices.Clone(points), func(p schedule.Point) bool { return !p.IsWrite() })
	e.random.Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	for i := range min(planePoints, len(writes)) {
		for _, k := range kinds {
			all = append(all, schedule.Fault{Kind: k, At: &writes[i]})
		}
	}
	for step := range e.options.Steps {
		for _, k := range kinds {
			all = append(all, schedule.Fault{Kind: k, Step: step})
		}
	}
	return all
}

// splitJobs returns the jobs that share the control plane, and the jobs that need it for themselves.
func splitJobs(jobs []job) (shared, alone []job) {
	for _, j := range jobs {
		if slices.ContainsFunc(j.schedule.Faults, func(f schedule.Fault) bool { return f.Kind.ConcernsAll() }) {
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
	if needsPlane(j.schedule) {
		return e.patient()
	}
	return e.wait
}

// strike stops a component of the control plane, starts it again, and returns when the server serves.
func (r *run) strike(ctx context.Context, f schedule.Fault) error {
	plane := r.explorer.options.Plane
	if plane == nil {
		return fmt.Errorf("the fault %s stops a component of the control plane, and the exploration may not; use --plane, or explore.Plane", f.Kind)
	}
	r.outages.Add(1)
	defer r.outages.Add(-1)
	r.recordEvent(finding.Event{Lane: finding.Server, Text: f.String(), Fault: true})
	component, stop, start, down := apiServer, plane.Kill, plane.StartComponent, outage
	switch f.Kind {
	case schedule.EtcdKilled:
		component = etcd
	case schedule.EtcdPaused:
		component, stop, start, down = etcd, plane.Pause, plane.Resume, pause
	}
	if err := stop(ctx, component); err != nil {
		return err
	}
	interrupted := clock.SleepReal(ctx, down)
	// The component is started in any case.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxReturn)
	defer cancel()
	if err := errors.Join(start(ctx, component), interrupted); err != nil {
		return err
	}
	return r.waitUntilServing(ctx)
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
			return fmt.Errorf("the control plane does not serve again within %s: %w", maxReturn, err)
		}
	}
}

// catchUp waits until the recorder has all objects that the server has. The server may be away for a time in a
// run that stops components of the control plane.
func (r *run) catchUp(ctx context.Context) error {
	written := r.writtenResources()
	err := r.recording.CatchUp(ctx, written...)
	if !needsPlane(r.schedule) {
		return err
	}
	for until := time.Now().Add(maxReturn); err != nil && time.Now().Before(until); {
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
		err = r.recording.CatchUp(ctx, written...)
	}
	return err
}
