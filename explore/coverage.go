package explore

import "github.com/yare-go/yare/explore/internal/finding"

// Coverage counts what an exploration has run. The report in Settings.ReportFile has more.
type Coverage struct {
	// Runs counts all runs, with the reference runs and the repetitions.
	Runs int
	// Complete reports whether all planned runs were made before Settings.Budget ended.
	Complete bool
	// Kinds counts the planned runs and the runs in which the fault happened, by the kind of the fault.
	Kinds map[string]Count
	// Points counts the writes of the reference runs, and the writes before which a crash happened.
	Points Count
	// Fields counts the fields of the custom resources, and the fields that had another value in a run.
	Fields Count
	// Transitions counts the changes of the declared state that the schema suggests, and the changes made by
	// the user in a run.
	Transitions Count
	// Conditions counts the conditions of Settings.Sometimes, and the conditions that have held.
	Conditions Count
	// Statements counts the statements of a [Binary] with Cover, and the statements that have run, by package.
	Statements map[string]Count
	// Warnings are the reasons why the exploration may prove less than it seems to.
	Warnings []string
	// NeverHappened are the kinds of faults that can happen to the operator, and have happened in no run.
	NeverHappened []string
	// UnusedAcceptances are the differences of Settings.Ignore and Settings.AcceptFile that no run has shown.
	UnusedAcceptances []string
}

// Count is a number of things done, out of a number of things planned or found.
type Count struct{ Done, Total int }

// newCoverage returns the public part of the coverage in a record.
func newCoverage(c finding.Coverage) *Coverage {
	public := &Coverage{
		Runs: c.Runs, Complete: c.IsComplete, Kinds: newCounts(c.Kinds),
		Points: Count(c.Points), Fields: Count(c.Fields), Transitions: Count(c.Transitions), Conditions: Count(c.Conditions),
		Statements: newCounts(c.Statements), Warnings: c.Warnings, UnusedAcceptances: c.UnusedAcceptances,
	}
	for _, kind := range c.NeverHappened {
		public.NeverHappened = append(public.NeverHappened, string(kind))
	}
	return public
}

func newCounts[K ~string](counts map[K]finding.Count) map[string]Count {
	all := make(map[string]Count, len(counts))
	for name, count := range counts {
		all[string(name)] = Count(count)
	}
	return all
}
