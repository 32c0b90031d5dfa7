package faults

import (
	"context"
	"fmt"
	"slices"
)

// DeniedInvalid answers the write of its point, and all writes of the step with the verb and the object of the point,
// with 422. It lasts until the next step, in which the user changes the sample. The program must try the change then.
const DeniedInvalid Kind = "denied-invalid"

// invalidity is the family of [DeniedInvalid]. Explorations plan its runs, because the user changes the sample in them.
type invalidity struct{ baseFamily }

func (invalidity) Describe() Description {
	return Description{
		Kinds: []Kind{DeniedInvalid}, IsDefault: true, OutlastsStep: true,
		Opportunity: "the program writes no object in the first step, or the schema suggests no change that the user can make",
	}
}

func (invalidity) Text(f Fault) string {
	return fmt.Sprintf("%s until the next step from %s", f.Kind, f.At)
}

func (invalidity) arm(a *Armed, _ stepContext) (effect, error) { return newDenying(a) }

func (invalidity) AtTrigger(_ context.Context, run *Run, a *Armed) error {
	run.RecordFault(InServer, a.fault.String())
	return nil
}

// OutlastsStep reports whether one of these faults happens in a step, and ends only with the next step.
func OutlastsStep(faults []Fault, step int) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool {
		return f.StepIndex() == step && FamilyOf(f.Kind).Describe().OutlastsStep
	})
}
