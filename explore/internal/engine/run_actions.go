package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// runActions is what faults may do in a run: see [faults.Actions].
type runActions struct {
	cluster   *cluster
	namespace string
	names     *history.Names
	options   history.Options
	steps     []finding.Step
	proxy     *faults.InjectingProxy
	// history returns the history of the run so far.
	history func() history.History
	// catchUp brings the history up to the present: see [stateReader.catchUp].
	catchUp  func(ctx context.Context) error
	user     *userActor
	replicas *replicas
	quiet    *quietMeter
	rest     *restWaiter
	trace    *trace
	result   *runResult

	// stepOver is closed when the present step is over.
	stepOver <-chan struct{}
	// atStepEnd are called when the present step has ended, the last one first.
	atStepEnd []func() error
}

// beginStep begins a step. The channel over is closed when the step is over.
func (r *runActions) beginStep(over <-chan struct{}) { r.stepOver = over }

// endStep calls the functions of AtStepEnd.
func (r *runActions) endStep() error {
	var errs []error
	for _, undo := range slices.Backward(r.atStepEnd) {
		errs = append(errs, undo())
	}
	r.atStepEnd = nil
	return errors.Join(errs...)
}

// Object implements [faults.Actions].
func (r *runActions) Object(
	ctx context.Context, o faults.Object,
) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error) {
	return r.cluster.find(ctx, o, r.namespace, r.names)
}

// Objects implements [faults.Actions].
func (r *runActions) Objects(ctx context.Context) (all []faults.FoundObject, err error) {
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	for _, v := range r.history().State().Objects() {
		all = append(all, faults.FoundObject{
			Object: faults.Object{Resource: v.Resource, Name: r.names.Normalize(v.Name)}, Content: v.Content(),
		})
	}
	return all, nil
}

// Created implements [faults.Actions].
func (r *runActions) Created() []string { return r.proxy.Created() }

// IsLastStep implements [faults.Actions].
func (r *runActions) IsLastStep(step int) bool { return step == len(r.steps)-1 }

// TakeStep implements [faults.Actions].
func (r *runActions) TakeStep(ctx context.Context, step int) error {
	return r.user.takeStep(ctx, r.steps[step])
}

// CrashProgram implements [faults.Actions].
func (r *runActions) CrashProgram(why string, restartsNow bool) error {
	return r.replicas.crash(why, restartsNow)
}

// RestartProgram implements [faults.Actions].
func (r *runActions) RestartProgram() error { return r.replicas.restart() }

// AdvanceClock implements [faults.Actions].
func (r *runActions) AdvanceClock(ctx context.Context) (bool, error) {
	return r.replicas.advanceClock(ctx)
}

// HandOver implements [faults.Actions].
func (r *runActions) HandOver(a *faults.Armed, isKilled bool) error {
	return r.replicas.handOver(a, isKilled, r.stepOver)
}

// AtStepEnd implements [faults.Actions].
func (r *runActions) AtStepEnd(undo func() error) { r.atStepEnd = append(r.atStepEnd, undo) }

// WaitForRest implements [faults.Actions].
func (r *runActions) WaitForRest(ctx context.Context) error {
	r.quiet.recordAct()
	return r.rest.waitForRest(ctx)
}

// PreventRest implements [faults.Actions].
func (r *runActions) PreventRest(work func() error) error { return r.rest.preventRest(work) }

// CallInOutage implements [faults.Actions].
func (r *runActions) CallInOutage(ctx context.Context, work func() error) error {
	return r.replicas.callInOutage(func() error {
		if err := work(); err != nil {
			return err
		}
		return r.waitUntilServing(ctx)
	})
}

// waitUntilServing waits until the API server answers a read that needs etcd.
func (r *runActions) waitUntilServing(ctx context.Context) error {
	for {
		_, err := kube.Everywhere[corev1.Namespace](r.cluster.client).Get(ctx, r.namespace)
		if err == nil {
			r.trace.record(finding.Event{Lane: finding.Server, Text: "serves again"})
			return nil
		}
		if waited := clock.SleepReal(ctx, pollInterval); waited != nil {
			return fmt.Errorf("the control plane does not serve again within %s: %w", faults.MaxReturn, err)
		}
	}
}

// ExpectNoChange implements [faults.Actions].
func (r *runActions) ExpectNoChange(ctx context.Context, work func() error) error {
	before := len(r.history().Versions)
	if err := work(); err != nil {
		return err
	}
	if err := r.WaitForRest(ctx); err != nil {
		return err
	}
	if changes := history.Changes(r.history(), before, r.options); len(changes) > 0 {
		r.result.recordVerdict(finding.ChangesAtRest, r.trace.currentStep(), changes)
	}
	return nil
}

// RecordReread implements [faults.Actions].
func (r *runActions) RecordReread(o faults.Object, path, reason string) {
	object := faults.Object{Resource: o.Resource, Name: r.names.Normalize(o.Name)}
	r.result.recordVerdict(finding.Reread, r.trace.currentStep(),
		[]finding.Difference{{Object: object.String(), Path: path, Reason: reason}})
}

// RecordFault implements [faults.Actions].
func (r *runActions) RecordFault(where faults.Place, text string) { r.trace.recordFault(where, text) }

// RecordMissed implements [faults.Actions].
func (r *runActions) RecordMissed(f faults.Fault) { r.result.missed = append(r.result.missed, f) }

// RecordNotApplicable implements [faults.Actions].
func (r *runActions) RecordNotApplicable(f faults.Fault, reason string) {
	r.result.notApplicable = append(r.result.notApplicable, notApplicable{f, reason})
}

// samplesOf returns the objects that the user applies in a step, with normalized names. The step has been taken, so
// their kinds are known.
func samplesOf(raw []json.RawMessage, c *cluster, names *history.Names) (all []faults.Object) {
	for _, each := range raw {
		if o, err := c.objectOf(each); err == nil {
			o.Name = names.Normalize(o.Name)
			all = append(all, o)
		}
	}
	return all
}
