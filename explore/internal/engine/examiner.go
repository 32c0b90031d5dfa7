package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy/faults"
)

const (
	// maxTries is how often a run is tried if its fault does not happen.
	maxTries = 3
	// confirmations is how often a finding must repeat.
	confirmations = 2
	// minimizeBudget is how long a schedule is minimized.
	minimizeBudget = time.Minute
)

// compareState compares the state at the rest after a step with the expected state. It returns no difference if no
// state is expected.
type compareState func(step int, state history.State) []finding.Difference

// expectAnyState returns no difference, whatever the state is. It is for a run whose states are not compared, such as a
// run that shows what is expected of other runs.
func expectAnyState(int, history.State) []finding.Difference { return nil }

// examiner makes planned runs, compares them with the references, and confirms and minimizes what they find.
type examiner struct {
	run        runFunc
	references *references
	checks     *checks
	oneValue   *oneValueStates
	options    history.Options
	results    *results
	limits     waitLimits
	// repeatsTogether is true if the repetitions of a finding are made at the same time. They mostly wait.
	repeatsTogether bool
}

// examine makes a planned run, and confirms what the run finds. It repeats a run whose fault has not happened, and
// reports whether the fault has happened.
func (e *examiner) examine(ctx context.Context, j job) (hasHappened bool, err error) {
	compare, err := e.comparison(ctx, j)
	if err != nil {
		return false, err
	}
	limits := e.limits
	if j.schedule.Faults.HasServerInterruption() {
		limits = limits.forConfirmation() // the controllers of the control plane back off after an outage
	}
	var out *runResult
	for try := 0; try < maxTries; try++ {
		out, err = e.run(ctx, j.schedule, limits, compare)
		if fewer, ok := j.withoutRefused(err); ok {
			e.results.update(func(c *finding.Coverage) { c.Refused++ })
			j = fewer
			try-- // a run with fewer steps is not a repetition
			if len(j.schedule.Steps) == 1 {
				e.results.addRun(j,
					&runResult{notApplicable: []notApplicable{{faults.Fault{Kind: j.kind}, "the API server refuses the values"}}})
				return false, nil
			}
			if compare, err = e.comparison(ctx, j); err != nil {
				return false, err
			}
			continue
		}
		if err != nil {
			return false, err
		}
		e.results.update(func(c *finding.Coverage) { c.Runs++ })
		if len(out.missed) == 0 && (len(out.history.Gaps) == 0 || j.schedule.Faults.HasServerInterruption()) ||
			out.verdict != "" {
			break
		}
	}
	e.judgeHistory(j, out)
	if out.verdict != "" && !e.results.isKnown(out.verdict, out.differences) {
		if err := e.confirm(ctx, j, compare, out); err != nil {
			if ctx.Err() != nil { // the time has ended; the run itself was made
				e.results.addRun(j, out)
			}
			return false, err
		}
	}
	e.results.addRun(j, out)
	return out.hasHappened(), nil
}

// confirm repeats a run with longer waits, and adds a finding if the verdict is the same. A finding whose repetitions
// cannot be made is added as unconfirmed.
func (e *examiner) confirm(ctx context.Context, j job, compare compareState, first *runResult) error {
	f := finding.Finding{Verdict: first.verdict, Schedule: j.schedule, Seen: 1, Tries: 1}
	first.setEvidence(&f)
	for _, r := range e.repeatAll(ctx, j, compare) {
		if r.err != nil {
			f.IsUnconfirmed = f.Seen < 2
			e.results.addFinding(f)
			return r.err
		}
		out := r.run
		e.addRepetition(j, out, &f)
		e.results.update(func(c *finding.Coverage) { c.Runs, c.Repeats = c.Runs+1, c.Repeats+1 })
		if out.verdict == finding.Late && f.Verdict != finding.Late { // the state was wrong after a shorter wait
			f.Verdict, f.Seen = finding.Late, f.Seen+1
		}
	}
	switch {
	case f.Seen > 1 || f.Verdict.IsCertain():
	case first.hasFailedCheck: // one state that must never be is enough
		f.Verdict = finding.CheckFailed
		f.Differences = slices.DeleteFunc(f.Differences, func(d finding.Difference) bool { return d.Check == "" })
	default:
		return nil
	}
	err := e.minimize(ctx, j, &f)
	e.results.addFinding(f)
	return err
}

// repetition is a repetition of the run of a finding, or the error because of which it could not be made.
type repetition struct {
	run *runResult
	err error
}

// repeatAll repeats the run of a finding with longer waits. After an error it begins no further run. Runs that need the
// control plane for themselves are made one after the other.
func (e *examiner) repeatAll(ctx context.Context, j job, compare compareState) []repetition {
	all := make([]repetition, confirmations)
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { all[i].run, all[i].err = e.repeat(ctx, j, compare) })
		if !e.repeatsTogether || j.schedule.Faults.NeedsOwnControlPlane() {
			if running.Wait(); all[i].err != nil {
				return all[:i+1]
			}
		}
	}
	running.Wait()
	return all
}

// repeat makes the run of a finding once more, with longer waits.
func (e *examiner) repeat(ctx context.Context, j job, compare compareState) (*runResult, error) {
	return e.run(ctx, j.schedule, e.limits.forConfirmation(), compare)
}

// addRepetition adds the result of a repetition to a finding. The repetition counts if it has the same verdict.
func (e *examiner) addRepetition(j job, out *runResult, f *finding.Finding) {
	e.judgeHistory(j, out)
	f.Tries++
	if f.Rule != "" {
		if violations := violationsOf(out.violations, f); len(violations) > 0 {
			f.Seen++
			f.Differences, f.Trace = violations[0].Differences(), out.trace
		}
		return
	}
	if out.verdict == f.Verdict {
		f.Seen++
		out.setEvidence(f)
	}
}

// violationsOf returns the violations that a finding stands for.
func violationsOf(all []rules.Violation, f *finding.Finding) []rules.Violation {
	return slices.DeleteFunc(slices.Clone(all), func(v rules.Violation) bool {
		return v.Rule != f.Rule || !slices.EqualFunc(v.Differences(), f.Differences, finding.Difference.IsSame)
	})
}

// replay repeats the run of a finding, tries times, and returns the finding with the results of these runs.
func (e *examiner) replay(ctx context.Context, f finding.Finding, tries int) (finding.Finding, error) {
	f.Seen, f.Tries = 0, 0
	j := job{schedule: f.Schedule}
	isChanged := func(f faults.Fault) bool { return f.IsDenial() && f.At == nil } // the user changes the sample
	if len(f.Schedule.Faults) == 0 || f.Schedule.Faults.HasFaultBeyond(0) ||
		slices.ContainsFunc(f.Schedule.Faults, isChanged) {
		j.changed = "the steps"
	}
	compare, err := e.comparison(ctx, j)
	if err != nil {
		return f, err
	}
	for range tries {
		out, err := e.repeat(ctx, j, compare)
		if err != nil {
			return f, err
		}
		e.addRepetition(j, out, &f)
		e.results.addRepeat(j.String())
	}
	return f, nil
}

// minimize removes steps from the schedule of a finding, as long as the verdict stays the same. The
// first step and the step after which the verdict was found stay. Runs with faults keep all steps. For example,
// of the steps 1 to 9, minimize first leaves out 2 to 5. If the verdict changes, it leaves out 2 and 3, 4 and 5, 6 and
// 7, and then single steps.
func (e *examiner) minimize(ctx context.Context, j job, f *finding.Finding) error {
	if len(f.Schedule.Steps) < 3 || !j.changesSamples() {
		return nil
	}
	steps, keep := f.Schedule.Steps, 1
	if f.Schedule.Comparison == finding.CompareChildren {
		keep = 2 // the second step shows how many children a clone has
	}
	for size, until := len(steps)/2, time.Now().Add(minimizeBudget); size > 0; size /= 2 {
		for from := keep; from+size < len(steps); {
			if time.Now().After(until) {
				return nil
			}
			fewer := slices.Delete(slices.Clone(steps), from, from+size)
			s := finding.Schedule{Seed: f.Schedule.Seed, Steps: fewer, Comparison: f.Schedule.Comparison}
			compare, err := e.comparison(ctx, job{schedule: s, changed: j.changed})
			if err != nil {
				return err
			}
			out, err := e.run(ctx, s, e.limits, compare)
			if _, refused := j.withoutRefused(err); refused {
				from += size
				continue
			}
			if err != nil {
				return err
			}
			e.results.update(func(c *finding.Coverage) { c.Runs++ })
			e.judgeHistory(j, out)
			if out.verdict != f.Verdict {
				from += size
				continue
			}
			steps = fewer[:out.verdictStep+1]
			s.Steps = steps
			f.Schedule = s
			out.setEvidence(f)
		}
	}
	return nil
}

// comparison returns the comparison of the states of a run.
func (e *examiner) comparison(ctx context.Context, planned job) (compareState, error) {
	switch {
	case planned.schedule.Faults.AreJudgedByRules():
		return expectAnyState, nil
	case planned.schedule.Comparison == finding.CompareChildren:
		return compareChildren(ctx, e.oneValue, planned.schedule.Steps)
	case planned.schedule.Comparison == finding.CompareEnd:
		return e.compareEnd(planned.schedule.Steps), nil
	case planned.changesSamples():
		return e.oneValue.comparison(ctx, planned.schedule.Steps)
	}
	return e.references.comparison(planned.schedule.Faults), nil
}

// compareEnd returns the comparison of the state after the last step with the last state of the references. An object
// that the user has deleted and that waits for a finalizer is no difference: its deletion came before the deletion of
// the objects that refer to it.
func (e *examiner) compareEnd(steps []finding.Step) compareState {
	compareLast := e.references.comparison(nil)
	return func(step int, state history.State) []finding.Difference {
		if step < len(steps)-1 {
			return nil
		}
		if e.oneValue.recordWaiting(steps, state) {
			return nil
		}
		return compareLast(len(e.references.masks)-1, state)
	}
}

// judgeHistory judges the history of a run, whatever its end. It makes no checks of the user if the recorder has
// missed versions. After an outage of the server it looks for destroyed objects in the remaining versions, because
// a destruction that these versions show has happened.
func (e *examiner) judgeHistory(planned job, out *runResult) {
	if planned.schedule.Comparison == finding.CompareChildren && out.verdict == finding.Busy && out.verdictStep > 1 {
		// A program that tries again and again what the server refuses is right.
		out.verdict = ""
		if out.differences = childChangedInTurn(out.history, out.verdictStep); len(out.differences) > 0 {
			out.verdict = finding.Wrong
		}
	}
	if e.judgeTerms(planned, out) {
		return
	}
	if planned.schedule.Faults.HasKind(faults.Restored) { // objects come again with other uids, and versions go back
		return
	}
	hasGaps := len(out.history.Gaps) > 0
	if !planned.changesSamples() && !planned.schedule.Faults.AreJudgedByRules() &&
		(!hasGaps || planned.schedule.Faults.HasServerInterruption()) { // other values may replace objects
		e.judgeDestruction(planned, out)
	}
	if !hasGaps {
		e.checks.checkHistory(out)
	}
}

// judgeDestruction looks for objects that were deleted, created twice or changed in a run, and in no reference.
func (e *examiner) judgeDestruction(planned job, out *runResult) {
	destroyed := history.Destroyed(e.references.histories(), out.history, e.options, planned.schedule.Faults...)
	if len(destroyed) == 0 {
		return
	}
	out.verdict, out.differences = finding.Destroyed, nil
	for _, d := range destroyed {
		out.verdictStep = d.Step
		out.differences = append(out.differences, finding.Difference{Object: d.Object.String(), Path: d.Path, Reason: d.Text})
	}
}

// judgeTerms looks for writes of former leaders in a run whose faults take the lease from a leader, and
// reports whether there are any. In other runs the exploration itself releases leases.
func (e *examiner) judgeTerms(planned job, out *runResult) bool {
	election := e.references.election
	if election == nil || !planned.schedule.Faults.NeedsStandby() {
		return false
	}
	late, step := election.lateWrites(out.requests)
	if len(late) == 0 {
		return false
	}
	out.verdict, out.verdictStep, out.differences = finding.TwoLeaders, step, late
	return true
}
