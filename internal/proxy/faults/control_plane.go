package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
)

// The kinds of faults that stop components of the control plane. Such a fault happens when the program makes the
// request, or, without a point, when the step has come to rest.
const (
	// ServerKilled and EtcdKilled kill the API server, or etcd, and start it again after a moment.
	ServerKilled Kind = "server-killed"
	EtcdKilled   Kind = "etcd-killed"
	// EtcdPaused stops etcd for some seconds.
	EtcdPaused Kind = "etcd-paused"
)

// The components that faults stop.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
)

const (
	// outage is how long a component that was killed is away, besides its start.
	outage = time.Second
	// pause is how long etcd is stopped.
	pause = 4 * time.Second
)

// whyNotStopped is why faults that stop components cannot happen.
const whyNotStopped = "the exploration may not stop components of this control plane; use --plane, or explore.Settings.OwnCluster"

// controlPlane is the family of faults that stop components. Explorations plan its kinds if components may be stopped,
// also if nobody names them.
type controlPlane struct{ baseFamily }

func (controlPlane) Describe() Description {
	return Description{
		Group: "plane", Kinds: []Kind{ServerKilled, EtcdKilled, EtcdPaused}, InterruptsServer: true,
		NeedsOwnControlPlane: true,
	}
}

// controlPlanePoints is the number of writes at which each kind happens.
const controlPlanePoints = 2

// Plan plans the kinds at some writes of the references, and after each step, if components may be stopped.
func (p controlPlane) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	kinds := in.planned(p.Describe().Kinds...)
	if !in.CanStopComponents {
		return newNotApplicable(whyNotStopped, kinds...), nil
	}
	var all []Fault
	writes := in.writes()
	in.Random.Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	count := min(controlPlanePoints, len(writes))
	if in.IsExhaustive {
		count = len(writes)
	}
	for i := range count {
		for _, k := range kinds {
			all = append(all, Fault{Kind: k, At: &writes[i]})
		}
	}
	return newPlan(append(all, in.afterEachStep(kinds...)...)), nil
}

func (controlPlane) arm(a *Armed, _ stepContext) (effect, error) {
	return newAtPoint(a, func(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
		a.recordTriggered()
		return next(r)
	})
}

func (p controlPlane) AtTrigger(ctx context.Context, run *Run, a *Armed) error {
	return p.interrupt(ctx, run, a.fault)
}

func (p controlPlane) AfterStep(ctx context.Context, run *Run, f Fault) error {
	return p.interrupt(ctx, run, f)
}

// interrupt stops a component, starts it again, and returns when the server serves.
func (controlPlane) interrupt(ctx context.Context, run *Run, f Fault) error {
	components := run.Components
	if components == nil {
		return fmt.Errorf("the fault %s stops a component of the control plane: %s", f.Kind, whyNotStopped)
	}
	run.RecordFault(InServer, f.String())
	sleep := func(d time.Duration) func() error {
		return func() error { return clock.SleepReal(ctx, d) }
	}
	switch f.Kind {
	case ServerKilled:
		return whileStopped(ctx, run, components.Kill, components.StartComponent, []string{apiServer}, sleep(outage))
	case EtcdKilled:
		return whileStopped(ctx, run, components.Kill, components.StartComponent, []string{etcd}, sleep(outage))
	default:
		return whileStopped(ctx, run, components.Pause, components.Resume, []string{etcd}, sleep(pause))
	}
}

// whileStopped stops components, calls work, starts the components in the opposite order, and returns when the server
// serves.
func whileStopped(
	ctx context.Context, run *Run, stop, start func(context.Context, string) error, components []string, work func() error,
) error {
	// The components are started in any case.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MaxReturn)
	defer cancel()
	return run.CallInOutage(ctx, func() error {
		var errs []error
		for _, each := range components {
			errs = append(errs, stop(ctx, each))
		}
		if errors.Join(errs...) == nil {
			errs = append(errs, work())
		}
		for _, each := range slices.Backward(components) {
			errs = append(errs, start(ctx, each))
		}
		return errors.Join(errs...)
	})
}
