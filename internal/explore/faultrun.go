package explore

import (
	"context"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// faultRun is a run as its faults see it. It is a [faults.Run].
type faultRun struct {
	*cluster
	run  *run
	wait patience
	// over is closed when the step is over.
	over <-chan struct{}
}

func newFaultRun(r *run, wait patience, over <-chan struct{}) *faultRun {
	return &faultRun{cluster: r.runner.cluster, run: r, wait: wait, over: over}
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
	return f.run.replicas.crash(why, restartsNow)
}

// RestartProgram implements [faults.Run].
func (f *faultRun) RestartProgram() error { return f.run.replicas.restart() }

// AdvanceClock implements [faults.Run].
func (f *faultRun) AdvanceClock(ctx context.Context) (bool, error) {
	return f.run.replicas.advanceClock(ctx)
}

// HandOver implements [faults.Run].
func (f *faultRun) HandOver(a *faults.Armed, isKilled bool) error {
	return f.run.replicas.handOver(a, isKilled, f.over)
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
	if changes := history.Changes(f.run.recording.History(), before, f.run.runner.options); len(changes) > 0 {
		f.run.recordProblem(finding.ChangesAtRest, f.run.trace.currentStep(), changes)
	}
	return nil
}

// Plane implements [faults.Run].
func (f *faultRun) Plane() faults.Plane { return f.run.runner.plane }

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
	f.run.trace.record(event)
}

// RecordMissed implements [faults.Run].
func (f *faultRun) RecordMissed(fault faults.Fault) {
	f.run.outcome.missed = append(f.run.outcome.missed, fault)
}

// RecordNotApplicable implements [faults.Run].
func (f *faultRun) RecordNotApplicable(fault faults.Fault) {
	f.run.outcome.notApplicable = append(f.run.outcome.notApplicable, fault)
}
