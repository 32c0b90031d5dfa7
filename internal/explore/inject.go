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
	run *faultRun
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
	a.run.Disarm()
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

// faultRun is a [faults.Run].
type faultRun struct {
	*cluster
	run  *run
	wait patience
	// over is closed when the step of armed faults is over.
	over <-chan struct{}
}

func newFaultRun(r *run, wait patience, over <-chan struct{}) *faultRun {
	return &faultRun{cluster: r.explorer.cluster, run: r, wait: wait, over: over}
}

// Namespace implements [faults.Run].
func (f *faultRun) Namespace() string { return f.run.namespace }

// Folder implements [faults.Run].
func (f *faultRun) Folder() string { return f.run.folder }

// Sample implements [faults.Run].
func (f *faultRun) Sample() (*unstructured.Unstructured, error) {
	return f.decode(f.run.schedule.Steps[0].Apply[0], f.run.namespace)
}

// Object implements [faults.Run].
func (f *faultRun) Object(ctx context.Context, o faults.Object) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error) {
	var none kube.API[unstructured.Unstructured]
	resource, err := f.resource(o.Resource)
	if err != nil {
		return nil, none, false, err
	}
	api := kube.Dynamic(f.client, resource, f.run.namespace)
	all, err := api.List(ctx)
	if err != nil {
		return nil, none, false, err
	}
	i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return f.run.names.Normalize(u.GetName()) == o.Name })
	if i < 0 {
		return nil, none, false, nil
	}
	return all[i], api, true, nil
}

// TakeStep implements [faults.Run].
func (f *faultRun) TakeStep(ctx context.Context, step int) error {
	return f.run.takeStep(ctx, f.run.schedule.Steps[step])
}

// Arm implements [faults.Run].
func (f *faultRun) Arm(fault faults.Fault) (*faults.Armed, error) { return f.run.proxy.Arm(fault) }

// Disarm implements [faults.Run].
func (f *faultRun) Disarm() { f.run.proxy.Disarm() }

// CrashProgram implements [faults.Run].
func (f *faultRun) CrashProgram(why string, restartsNow bool) error {
	return f.run.crashProgram(why, restartsNow)
}

// RestartProgram implements [faults.Run].
func (f *faultRun) RestartProgram() error { return f.run.restartProgram() }

// AdvanceClock implements [faults.Run].
func (f *faultRun) AdvanceClock(ctx context.Context) (bool, error) { return f.run.advanceClock(ctx) }

// HandOver implements [faults.Run].
func (f *faultRun) HandOver(a *faults.Armed, isKilled bool) error {
	return f.run.handOver(a, isKilled, f.over)
}

// WaitForRest implements [faults.Run].
func (f *faultRun) WaitForRest(ctx context.Context) error {
	f.run.acted = time.Now()
	return f.run.waitForRest(ctx, f.wait)
}

// ExpectNoChange implements [faults.Run].
func (f *faultRun) ExpectNoChange(ctx context.Context, act func() error) error {
	before := len(f.run.recording.Versions())
	if err := act(); err != nil {
		return err
	}
	if err := f.WaitForRest(ctx); err != nil {
		return err
	}
	if changes := history.Changes(f.run.recording.History(), before, f.run.explorer.historyOptions()); len(changes) > 0 {
		f.run.recordProblem(finding.ChangesAtRest, int(f.run.current.Load()), changes)
	}
	return nil
}

// Plane implements [faults.Run].
func (f *faultRun) Plane() faults.Plane { return f.run.explorer.options.Plane }

// Outage implements [faults.Run].
func (f *faultRun) Outage(ctx context.Context, work func() error) error {
	f.run.outages.Add(1)
	defer f.run.outages.Add(-1)
	if err := work(); err != nil {
		return err
	}
	return f.run.waitUntilServing(ctx)
}

// RecordFault implements [faults.Run].
func (f *faultRun) RecordFault(where faults.Place, text string) {
	event := finding.Event{Lane: finding.Operator, Text: text, Fault: true}
	switch where {
	case faults.InServer:
		event.Lane = finding.Server
	case faults.ByUser:
		event.Lane, event.To = finding.User, finding.Server
	}
	f.run.recordEvent(event)
}

// RecordMissed implements [faults.Run].
func (f *faultRun) RecordMissed(fault faults.Fault) {
	f.run.outcome.missed = append(f.run.outcome.missed, fault)
}

// RecordNotApplicable implements [faults.Run].
func (f *faultRun) RecordNotApplicable(fault faults.Fault) {
	f.run.outcome.notApplicable = append(f.run.outcome.notApplicable, fault)
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
