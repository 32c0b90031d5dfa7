package engine

import (
	"context"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// compareState compares the state at the rest after a step with the expected state. It returns no difference if no
// state is expected.
type compareState func(step int, state history.State) []finding.Difference

// expectNothing returns no difference. Runs that show what is expected of other runs have it.
func expectNothing(int, history.State) []finding.Difference { return nil }

// judge compares runs with the references.
type judge struct {
	references *references
	checks     *checks
	fresh      *freshStates
	options    history.Options
}

func newJudge(r *references, c *checks, f *freshStates, o history.Options) *judge {
	return &judge{r, c, f, o}
}

// comparison returns the comparison of the states of a run.
func (j *judge) comparison(ctx context.Context, planned job) (compareState, error) {
	if planned.field != "" {
		return j.fresh.comparison(ctx, planned.schedule.Steps)
	}
	return j.references.comparison(planned.schedule.Faults), nil
}

// judgeHistory judges the history of a run, whatever its end. It makes no checks of the user if the recorder has
// missed versions. After an outage of the server it looks for destroyed objects in the versions that are left,
// because a destruction that they show has happened.
func (j *judge) judgeHistory(planned job, out *outcome) {
	if j.judgeTerms(planned, out) {
		return
	}
	if faults.IsRestored(planned.schedule.Faults) { // objects come again with other uids, and versions go back
		return
	}
	hasGaps := len(out.history.Gaps) > 0
	if planned.field == "" && (!hasGaps || faults.StopsComponents(planned.schedule.Faults)) { // other values may replace objects
		j.judgeDestruction(planned, out)
	}
	if !hasGaps {
		j.checks.checkHistory(out)
	}
}

// judgeDestruction looks for objects that were deleted, created twice or changed in a run, and in no reference.
func (j *judge) judgeDestruction(planned job, out *outcome) {
	destroyed := history.Destroyed(j.references.histories(), out.history, j.options, planned.schedule.Faults...)
	if len(destroyed) == 0 {
		return
	}
	out.problem, out.differences = finding.Destroyed, nil
	for _, d := range destroyed {
		out.problemStep = d.Step
		out.differences = append(out.differences, finding.Difference{Object: d.Object.String(), Path: d.Path, Reason: d.Text})
	}
}

// judgeTerms looks for writes of former leaders in a run whose faults take the lease from a leader, and
// reports whether there are any. In other runs the exploration itself releases leases.
func (j *judge) judgeTerms(planned job, out *outcome) bool {
	election := j.references.election
	if election == nil || !faults.NeedsStandby(planned.schedule.Faults) {
		return false
	}
	late, step := election.lateWrites(out.requests)
	if len(late) == 0 {
		return false
	}
	out.problem, out.problemStep, out.differences = finding.TwoLeaders, step, late
	return true
}
