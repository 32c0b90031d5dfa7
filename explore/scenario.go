package explore

import (
	"fmt"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// Samples sets the objects that the user applies and deletes. Their namespaces do not count. Default:
// the objects in the file sample.yaml beside the program.
func Samples(objects ...kube.Object) Option {
	return func(e *exploration) error {
		step := Apply("samples", objects...)
		e.settings.Samples = append(e.settings.Samples, step.step.Apply...)
		return step.err
	}
}

// SampleFile sets the file whose objects the user applies and deletes.
func SampleFile(path string) Option {
	return func(e *exploration) (err error) {
		e.settings.Samples, err = engine.ReadSamples(path)
		return err
	}
}

// Scenario sets what the user does in each run, step by step, in place of applying and deleting the samples.
// The first step must apply objects. A step begins when the operator has come to rest after the step before.
func Scenario(steps ...Step) Option {
	return func(e *exploration) error {
		e.settings.Steps = nil
		for _, s := range steps {
			if s.err != nil {
				return s.err
			}
			e.settings.Steps = append(e.settings.Steps, s.step)
		}
		return nil
	}
}

// Step is what the user of an operator does at one time in a [Scenario]. [Apply] and [Delete] return steps.
type Step struct {
	step finding.Step
	// err is why the step cannot be made. Scenario returns it.
	err error
}

// Apply returns a step in which the user applies objects. Their namespaces do not count.
func Apply(name string, objects ...kube.Object) Step {
	s := Step{step: finding.Step{Name: name}}
	for _, o := range objects {
		raw, err := engine.Sample(o)
		if err != nil {
			s.err = fmt.Errorf("the object %s of the step %q: %w", o.GetName(), name, err)
		}
		s.step.Apply = append(s.step.Apply, raw)
	}
	return s
}

// Delete returns a step in which the user deletes objects.
func Delete(name string, objects ...kube.Object) Step {
	s := Step{step: finding.Step{Name: name}}
	for _, o := range objects {
		kind, err := kube.TypeOfObject(o)
		if err != nil {
			s.err = fmt.Errorf("the object %s of the step %q: %w", o.GetName(), name, err)
		}
		s.step.Delete = append(s.step.Delete, faults.Object{Resource: kind.Resource.GroupResource().String(), Name: o.GetName()})
	}
	return s
}
