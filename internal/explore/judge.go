package explore

import (
	"context"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
)

// judgeOf returns what compares the states of a run.
func (e *explorer) judgeOf(ctx context.Context, j job) (judge, error) {
	if j.field != "" {
		return e.judgeValues(ctx, j.schedule)
	}
	return e.judgeFaults, nil
}

// judgeFaults compares the state after a step with that of the references.
func (e *explorer) judgeFaults(step int, state history.State) []finding.Difference {
	return findingsOf(e.masks[step].Compare(e.references[0].states[step], state))
}

// findingsOf returns differences as a finding has them.
func findingsOf(differences []history.Difference) (all []finding.Difference) {
	for _, d := range differences {
		all = append(all, finding.Difference{Object: d.Object.String(), Path: d.Path, Want: d.Want, Got: d.Got})
	}
	return all
}

// judgeHistory looks for what died, was created twice or changed in a run, and no reference did. It looks
// at nothing in a run with other values, which may replace objects, and in a run whose recorder has missed
// versions. After an outage of the server it looks at the versions that are left: what it finds in them
// has happened.
func (e *explorer) judgeHistory(j job, out *outcome) {
	if e.judgeTerms(j, out) || j.field != "" || len(out.history.Gaps) > 0 && !needsPlane(j.schedule) {
		return
	}
	var references []history.History
	for _, r := range e.references {
		references = append(references, r.history)
	}
	var killed []schedule.Object
	for _, f := range j.schedule.Faults {
		if f.Object != nil {
			killed = append(killed, *f.Object)
		}
	}
	destroyed := history.Destroyed(references, out.history, e.historyOptions(), killed...)
	if len(destroyed) == 0 {
		return
	}
	out.problem, out.differences = finding.Destroyed, nil
	for _, d := range destroyed {
		out.problemStep = d.Step
		out.differences = append(out.differences, finding.Difference{Object: d.Object.String(), Path: d.Path, Reason: d.String()})
	}
}
