package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// stepInjector injects the faults of one step into a run.
type stepInjector struct {
	faults faults.Faults
	run    *faults.Run
	// over is closed when the step is over. running counts the goroutines that wait for triggers.
	over    chan struct{}
	running sync.WaitGroup
	// armed are the faults that requests and streams of the program trigger.
	armed []*faults.Armed

	mu  sync.Mutex
	err error
}

// newStepInjector returns the injector of the faults that belong to a step. beginRun returns the run for a channel that
// is closed when the step is over. The caller must call end, which closes the channel.
func newStepInjector(all []faults.Fault, step int, beginRun func(over <-chan struct{}) *faults.Run) *stepInjector {
	i := &stepInjector{over: make(chan struct{})}
	i.run = beginRun(i.over)
	for _, f := range all {
		if f.StepIndex() == step {
			i.faults = append(i.faults, f)
		}
	}
	return i
}

// hasFaults reports whether a fault belongs to the step.
func (i *stepInjector) hasFaults() bool { return len(i.faults) > 0 }

// arm arms the faults that requests and streams of the program trigger.
func (i *stepInjector) arm(ctx context.Context) error {
	return i.forEach(func(f faults.Fault) error {
		if !f.NeedsArming() {
			return nil
		}
		armed, err := i.run.Injector.Arm(f)
		if err != nil {
			return err
		}
		i.armed = append(i.armed, armed)
		i.running.Go(func() { i.followTrigger(ctx, armed) })
		return nil
	})
}

// beforeStep carries out what the faults do before the user's changes.
func (i *stepInjector) beforeStep(ctx context.Context) error {
	return i.forEach(func(f faults.Fault) error { return faults.FamilyOf(f.Kind).BeforeStep(ctx, i.run, f) })
}

// afterStep carries out the faults that happen when the step has come to rest: crashes, and changes by other users
// and controllers.
func (i *stepInjector) afterStep(ctx context.Context) error {
	return i.forEach(func(f faults.Fault) error {
		if f.NeedsArming() {
			return nil
		}
		return faults.FamilyOf(f.Kind).AfterStep(ctx, i.run, f)
	})
}

// forEach calls a function for each fault.
func (i *stepInjector) forEach(inject func(faults.Fault) error) error {
	for _, f := range i.faults {
		if err := inject(f); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

// followTrigger carries out the part of a fault that the proxy does not carry out.
func (i *stepInjector) followTrigger(ctx context.Context, armed *faults.Armed) {
	select {
	case <-armed.Triggered():
	case <-i.over:
		return
	}
	if err := faults.FamilyOf(armed.Fault().Kind).AtTrigger(ctx, i.run, armed); err != nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.err = err
	}
}

// disarm ends the armed faults, so that streams deliver the events held back, and restarts a program that waited for
// the rest. It returns the faults that did not happen. The error may be a [handOverError].
func (i *stepInjector) disarm() (missed []faults.Fault, err error) {
	for _, armed := range i.armed {
		if !armed.IsTriggered() {
			missed = append(missed, armed.Fault())
		}
	}
	if !slices.ContainsFunc(i.faults,
		func(f faults.Fault) bool { return faults.FamilyOf(f.Kind).Describe().OutlastsStep }) {
		i.run.Injector.Disarm()
	}
	i.mu.Lock()
	err = i.err
	i.mu.Unlock()
	for _, armed := range i.armed {
		if err != nil {
			return missed, err
		}
		err = faults.FamilyOf(armed.Fault().Kind).AtRest(i.run, armed.Fault())
	}
	return missed, err
}

// end ends the goroutines of i.
func (i *stepInjector) end() {
	close(i.over)
	i.running.Wait()
}
