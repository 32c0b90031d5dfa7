package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// judgeOf returns the judge of a run.
func (e *explorer) judgeOf(ctx context.Context, j job) (judge, error) {
	if j.field != "" {
		return e.judgeValues(ctx, j.schedule)
	}
	return e.judgeFaults(j.schedule), nil
}

// judgeFaults returns a judge of a run with faults: the state after a step must be the state of the references.
func (e *explorer) judgeFaults(s schedule.Schedule) judge {
	var kinds []faults.Kind
	for _, f := range s.Faults {
		kinds = append(kinds, f.Kind)
	}
	return func(step int, state history.State) []finding.Difference {
		return e.masks[step].Compare(e.references[0].states[step], state, kinds...)
	}
}

// judgeHistory judges the history of a run, whatever its end. It makes no checks of the user if the recorder has
// missed versions. After an outage of the server it looks for destroyed objects in the versions that are left,
// because a destruction that they show has happened.
func (e *explorer) judgeHistory(j job, out *outcome) {
	if e.judgeTerms(j, out) {
		return
	}
	if faults.IsRestored(j.schedule.Faults) { // objects come again with other uids, and versions go back
		return
	}
	hasGaps := len(out.history.Gaps) > 0
	if j.field == "" && (!hasGaps || faults.StopsComponents(j.schedule.Faults)) { // other values may replace objects
		e.judgeLives(j, out)
	}
	if !hasGaps {
		e.checkVersions(out)
	}
}

// judgeLives looks for objects that died, were created twice or changed in a run, and in no reference.
func (e *explorer) judgeLives(j job, out *outcome) {
	var references []history.History
	for _, r := range e.references {
		references = append(references, r.history)
	}
	destroyed := history.Destroyed(references, out.history, e.historyOptions(), j.schedule.Faults...)
	if len(destroyed) == 0 {
		return
	}
	out.problem, out.differences = finding.Destroyed, nil
	for _, d := range destroyed {
		out.problemStep = d.Step
		out.differences = append(out.differences, finding.Difference{Object: d.Object.String(), Path: d.Path, Reason: d.Text})
	}
}

// Moment is when a check of the user's own is made.
type Moment int

// The moments.
const (
	// Always is at every version of every object.
	Always Moment = iota
	// Sometimes is at every version too. The check must hold once in the whole exploration.
	Sometimes
	// AtRest is at the rest after each step, and AtEnd at the rest after the last one.
	AtRest
	AtEnd
)

// Check is a check of the user's own.
type Check struct {
	Name   string
	Moment Moment
	// Run returns why the check does not hold in a state, or nil. Runs are concurrent, and so are the
	// calls.
	Run func(history.State) error
}

// checksOf holds the known results of the checks of the user, by their indices.
type checksOf struct {
	// hasFailed is set for checks that fail in a reference run. They are reported once.
	hasFailed map[int]bool
	// hasHeld is set for conditions that have held in a version. failures holds why the others have not held.
	hasHeld  map[int]bool
	failures map[int]error
}

// checkRest makes the checks of the user at the rest after a step.
func (r *run) checkRest(step int, state history.State) (failed []finding.Difference) {
	for _, c := range r.explorer.options.Checks {
		if c.Moment != AtRest && (c.Moment != AtEnd || step < len(r.schedule.Steps)-1) {
			continue
		}
		if err := c.Run(state); err != nil {
			failed = append(failed, finding.Difference{Check: c.Name, Reason: fmt.Sprintf("at rest after step %d: %v", step+1, err)})
		}
	}
	return failed
}

// checkVersions makes the checks of the user at every version of a run. A failure replaces a warning, and is added
// to the differences of any other verdict.
func (e *explorer) checkVersions(out *outcome) {
	open := e.openChecks()
	if len(open) == 0 {
		return
	}
	var failed []finding.Difference
	for v, state := range out.history.States() {
		for i, c := range open {
			err := c.Run(state)
			switch {
			case c.Moment == Sometimes:
				e.recordCondition(i, err)
				if err == nil {
					delete(open, i)
				}
			case err != nil:
				delete(open, i)
				failed = append(failed, e.recordViolation(c, v, state, err, out))
			}
		}
	}
	if len(failed) == 0 {
		return
	}
	out.isViolated = true
	if out.problem == "" || out.problem.IsWarning() {
		out.problem, out.differences = finding.CheckFailed, nil
	}
	out.differences = append(out.differences, failed...)
}

// openChecks returns the checks to make at every version, by their indices: the checks that no reference has
// failed, and the conditions that have not held.
func (e *explorer) openChecks() map[int]Check {
	e.mu.Lock()
	defer e.mu.Unlock()
	open := make(map[int]Check)
	for i, c := range e.options.Checks {
		if c.Moment == Always && !e.checks.hasFailed[i] || c.Moment == Sometimes && !e.checks.hasHeld[i] {
			open[i] = c
		}
	}
	return open
}

// recordCondition records whether a condition has held.
func (e *explorer) recordCondition(i int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.checks.hasHeld[i] = true
	} else {
		e.checks.failures[i] = err
	}
}

// recordViolation records in the trace of a run that a check has failed, and returns the difference.
func (e *explorer) recordViolation(c Check, v history.Version, state history.State, err error, out *outcome) finding.Difference {
	at, object := v.At.Sub(out.began), state.ObjectOf(v).String()
	event := finding.Event{At: at, Step: v.Step, Lane: finding.Server, Text: fmt.Sprintf("the check %q fails: %v", c.Name, err)}
	out.trace = append(out.trace, event)
	slices.SortStableFunc(out.trace, func(a, b finding.Event) int { return cmp.Compare(a.At, b.At) })
	if out.problem == "" {
		out.problemStep = max(v.Step, 0)
	}
	return finding.Difference{
		Object: object, Check: c.Name,
		Reason: fmt.Sprintf("in step %d, %.3f s after the start, when %s had the resource version %s: %v", v.Step+1, at.Seconds(), object, v.ResourceVersion, err),
	}
}

// checkReferences makes the checks of the user in the reference runs. A check that fails there is a finding
// without faults.
func (e *explorer) checkReferences() {
	f := finding.Finding{
		Operator: e.operator.String(), Verdict: finding.CheckFailed, Schedule: schedule.Schedule{Seed: e.options.Seed, Steps: e.options.Steps},
	}
	for _, out := range e.references {
		if len(out.history.Gaps) > 0 {
			continue
		}
		e.checkVersions(out)
		f.Tries++
		if out.isViolated {
			f.Seen++
			f.Differences, f.Trace = out.differences, out.trace
		}
	}
	if f.Seen == 0 {
		return
	}
	for i, c := range e.options.Checks {
		e.checks.hasFailed[i] = slices.ContainsFunc(f.Differences, func(d finding.Difference) bool { return d.Check == c.Name })
	}
	e.findings = append(e.findings, f)
}

// judgeConditions reports the conditions that have held in no run. The runs that an exploration did not make
// could have shown them.
func (e *explorer) judgeConditions() {
	for i, c := range e.options.Checks {
		if c.Moment != Sometimes {
			continue
		}
		e.coverage.Conditions.Total++
		if e.checks.hasHeld[i] {
			e.coverage.Conditions.Done++
			continue
		}
		runs := e.coverage.Runs
		reason := fmt.Sprintf("the condition never held in %d runs: %v", runs, e.checks.failures[i])
		if !e.coverage.Complete {
			e.coverage.Warnings = append(e.coverage.Warnings, fmt.Sprintf("condition %q: %s. Not all planned runs were made.", c.Name, reason))
			continue
		}
		e.findings = append(e.findings, finding.Finding{
			Operator: e.operator.String(), Verdict: finding.NeverHeld, Seen: runs, Tries: runs,
			Schedule: schedule.Schedule{Seed: e.options.Seed, Steps: e.options.Steps}, Differences: []finding.Difference{{Check: c.Name, Reason: reason}},
		})
	}
}
