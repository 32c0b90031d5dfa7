package faults

import "slices"

// Plan is what a family plans for an exploration.
type Plan struct {
	// Runs holds the faults of each run.
	Runs [][]Fault
	// MoreRuns holds the faults of more runs, for the rest of a budget. Each kind of theirs is among Runs too.
	MoreRuns [][]Fault
	// NotApplicable holds the reasons why kinds, or groups of kinds, cannot happen.
	NotApplicable map[Kind]string
}

// newPlan returns a plan with one run for each fault.
func newPlan(faults []Fault) Plan { return Plan{Runs: slices.Collect(slices.Chunk(faults, 1))} }

// newNotApplicable returns a plan without runs. reason is why the kinds cannot happen.
func newNotApplicable(reason string, kinds ...Kind) Plan {
	p := Plan{NotApplicable: make(map[Kind]string)}
	for _, k := range kinds {
		p.NotApplicable[k] = reason
	}
	return p
}
