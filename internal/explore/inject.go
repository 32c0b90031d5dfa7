package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// injectBeforeStep carries out what the faults of a step do before the user's changes.
func (r *run) injectBeforeStep(ctx context.Context, step int, wait patience) error {
	return r.forFaults(step, func(f faults.Fault) error {
		return faults.FamilyOf(f.Kind).BeforeStep(ctx, newFaultRun(r, wait, nil), f)
	})
}

// injectAfterStep carries out the faults that happen when a step has come to rest: crashes, and changes by other users
// and controllers.
func (r *run) injectAfterStep(ctx context.Context, step int, wait patience) error {
	return r.forFaults(step, func(f faults.Fault) error {
		if f.IsArmed() {
			return nil
		}
		return faults.FamilyOf(f.Kind).AfterStep(ctx, newFaultRun(r, wait, nil), f)
	})
}

// forFaults calls a function for each fault of a step.
func (r *run) forFaults(step int, inject func(faults.Fault) error) error {
	for _, f := range r.schedule.Faults {
		if f.StepIndex() != step {
			continue
		}
		if err := inject(f); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

// armedFaults are the faults of one step of a run that requests and streams of the program trigger.
type armedFaults struct {
	run *faults.Run
	all []*faults.Armed
	// over is closed when the step is over. running counts the goroutines that wait for triggers.
	over    chan struct{}
	running sync.WaitGroup

	mu  sync.Mutex
	err error
}

// armFaults arms the faults of a step. The caller must call wait.
func (r *run) armFaults(ctx context.Context, step int, wait patience) (*armedFaults, error) {
	over := make(chan struct{})
	a := &armedFaults{run: newFaultRun(r, wait, over), over: over}
	return a, r.forFaults(step, func(f faults.Fault) error {
		if !f.IsArmed() {
			return nil
		}
		armed, err := r.proxy.Arm(f)
		if err != nil {
			return err
		}
		a.all = append(a.all, armed)
		a.running.Go(func() { a.followTrigger(ctx, armed) })
		return nil
	})
}

// followTrigger carries out the part of a fault that the proxy does not carry out.
func (a *armedFaults) followTrigger(ctx context.Context, armed *faults.Armed) {
	select {
	case <-armed.Triggered():
	case <-a.over:
		return
	}
	if err := faults.FamilyOf(armed.Fault().Kind).AtTrigger(ctx, a.run, armed); err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.err = err
	}
}

// disarm ends the faults of the step, so that streams deliver the events that were held back, and restarts a
// program that waited for the rest. It returns the faults that did not happen. The error may be a [handOverError].
func (a *armedFaults) disarm() (missed []faults.Fault, err error) {
	for _, armed := range a.all {
		if !armed.IsTriggered() {
			missed = append(missed, armed.Fault())
		}
	}
	a.run.Injector.Disarm()
	a.mu.Lock()
	err = a.err
	a.mu.Unlock()
	for _, armed := range a.all {
		if err != nil {
			return missed, err
		}
		err = faults.FamilyOf(armed.Fault().Kind).AtRest(a.run, armed.Fault())
	}
	return missed, err
}

// wait ends the goroutines of a.
func (a *armedFaults) wait() {
	close(a.over)
	a.running.Wait()
}

// handOverError is a problem that the hand-over of a lease has shown.
type handOverError struct{ text string }

// Error implements error.
func (e *handOverError) Error() string { return e.text }

// newFaultRun returns what faults do to a run. The channel over is closed when the step of armed faults is over.
func newFaultRun(r *run, wait patience, over <-chan struct{}) *faults.Run {
	waitForRest := func(ctx context.Context) error {
		r.acted = time.Now()
		return r.waitForRest(ctx, wait)
	}
	return &faults.Run{
		Cluster: r.explorer.cluster, Namespace: r.namespace, Folder: r.folder, Sample: firstSample(r.schedule.Steps),
		Plane: r.explorer.options.Plane, Injector: r.proxy.Injector,
		Object:       r.findObject,
		TakeStep:     func(ctx context.Context, step int) error { return r.takeStep(ctx, r.schedule.Steps[step]) },
		CrashProgram: r.crashProgram, RestartProgram: r.restartProgram, AdvanceClock: r.advanceClock,
		HandOver:    func(a *faults.Armed, isKilled bool) error { return r.handOver(a, isKilled, over) },
		WaitForRest: waitForRest,
		ExpectNoChange: func(ctx context.Context, act func() error) error {
			before := len(r.recording.Versions())
			if err := act(); err != nil {
				return err
			}
			if err := waitForRest(ctx); err != nil {
				return err
			}
			if changes := history.Changes(r.recording.History(), before, r.explorer.historyOptions()); len(changes) > 0 {
				r.recordProblem(finding.ChangesAtRest, int(r.current.Load()), changes)
			}
			return nil
		},
		Outage: func(ctx context.Context, work func() error) error {
			r.outages.Add(1)
			defer r.outages.Add(-1)
			if err := work(); err != nil {
				return err
			}
			return r.waitUntilServing(ctx)
		},
		RecordFault: func(where faults.Place, text string) {
			event := finding.Event{Lane: finding.Operator, Text: text, Fault: true}
			switch where {
			case faults.InServer:
				event.Lane = finding.Server
			case faults.ByUser:
				event.Lane, event.To = finding.User, finding.Server
			}
			r.recordEvent(event)
		},
		RecordMissed:        func(f faults.Fault) { r.outcome.missed = append(r.outcome.missed, f) },
		RecordNotApplicable: func(f faults.Fault) { r.outcome.notApplicable = append(r.outcome.notApplicable, f) },
	}
}

// findObject returns the object of a normalized name, with the API of its kind. It reports whether the object exists.
func (r *run) findObject(ctx context.Context, o faults.Object) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error) {
	var none kube.API[unstructured.Unstructured]
	resource, err := r.explorer.resource(o.Resource)
	if err != nil {
		return nil, none, false, err
	}
	api := kube.Dynamic(r.explorer.client, resource, r.namespace)
	all, err := api.List(ctx)
	if err != nil {
		return nil, none, false, err
	}
	i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return r.names.Normalize(u.GetName()) == o.Name })
	if i < 0 {
		return nil, none, false, nil
	}
	return all[i], api, true, nil
}

// recordHandOver records the problem of a hand-over as the problem of the run. It returns all other errors.
func (r *run) recordHandOver(err error) error {
	problem, ok := errors.AsType[*handOverError](err)
	if !ok {
		return err
	}
	r.recordProblem(finding.Wrong, int(r.current.Load()), []finding.Difference{{Object: proxy.Leases, Reason: problem.text}})
	return nil
}
