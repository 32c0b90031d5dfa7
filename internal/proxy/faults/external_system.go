package faults

import (
	"context"
	"fmt"
)

// The kinds of faults of the connections to an external system. They happen when a number of parts of data have passed
// in their step: see [Fault.Part].
const (
	// OutsideRefused cuts all connections, and refuses new ones for some seconds.
	OutsideRefused Kind = "outside-refused"
	// OutsideCut cuts all connections once.
	OutsideCut Kind = "outside-cut"
	// OutsideSlow delays each part of data for some seconds.
	OutsideSlow Kind = "outside-slow"
)

// ExternalConnections are the connections of a program to an external system.
type ExternalConnections interface {
	// Inject lets a kind happen at a part of data of the step, counted from 1.
	Inject(k Kind, part int)
	// HasHappened reports whether the kind that was injected last has happened.
	HasHappened() bool
}

// externalSystem is the family of faults of the connections to an external system.
type externalSystem struct{ baseFamily }

func (externalSystem) Describe() Description {
	return Description{
		Group: "outside", Kinds: []Kind{OutsideCut, OutsideRefused, OutsideSlow}, IsDefault: true,
		WhyNotPlanned: "no data passed to the external system",
	}
}

// externalSystemPlaces is the number of places at which each kind happens in a step.
const externalSystemPlaces = 2

// Plan plans each kind at some places in the data of each step, in which data has passed in the references.
func (e externalSystem) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	d := e.Describe()
	kinds := in.planned(d.Kinds...)
	if len(kinds) == 0 {
		return Plan{}, nil
	}
	if !in.HasExternalSystem {
		return newNotApplicable("no external system is named; use --outside, or explore.Settings.OutsideAddress",
			Kind(d.Group)), nil
	}
	var chosen, rest []Fault
	for i, step := range in.Steps {
		for _, k := range kinds {
			for n, place := range in.Random.Perm(step.ExternalParts) {
				f := Fault{Kind: k, Step: i, Part: place + 1}
				if n < externalSystemPlaces {
					chosen = append(chosen, f)
				} else {
					rest = append(rest, f)
				}
			}
		}
	}
	return newRotatedPlan(in, chosen, rest), nil
}

func (externalSystem) Text(f Fault) string {
	return fmt.Sprintf("%s at part %d of the data of step %d", f.Kind, f.Part, f.Step+1)
}

// fromEarlierFile moves the number of the part, which earlier versions wrote as the number of events.
func (externalSystem) fromEarlierFile(f Fault) Fault {
	if f.Part == 0 {
		f.Part, f.Events = f.Events, 0
	}
	return f
}

func (externalSystem) BeforeStep(_ context.Context, run *Run, f Fault) error {
	if run.ExternalConnections == nil {
		return fmt.Errorf("the fault %s needs an external system: name its address", f.Kind)
	}
	run.ExternalConnections.Inject(f.Kind, f.Part)
	return nil
}

func (externalSystem) AfterStep(_ context.Context, run *Run, f Fault) error {
	if run.ExternalConnections.HasHappened() {
		run.RecordFault(InProgram, f.String())
	} else {
		run.RecordMissed(f)
	}
	return nil
}
