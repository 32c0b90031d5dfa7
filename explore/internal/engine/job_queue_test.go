package engine

import (
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// kindsInOrder returns the kinds of the runs in the order in which a queue returns them. A run of the kind missed misses its
// fault.
func kindsInOrder(q *jobQueue, missed faults.Kind) (kinds []faults.Kind) {
	for {
		j, _, isLeft := q.next()
		if !isLeft {
			return kinds
		}
		kinds = append(kinds, j.kind)
		if j.kind == missed {
			q.recordMissed(j.kind)
		}
	}
}

// Runs of kinds that have not happened come first, and the runs for the rest of a budget last.
func TestJobQueue(t *testing.T) {
	t.Parallel()
	jobs := func(kinds ...faults.Kind) (jobs []job) {
		for _, k := range kinds {
			jobs = append(jobs, job{kind: k})
		}
		return jobs
	}
	planned := jobs(faults.Crash, faults.Crash, faults.Reset, faults.Reset, faults.Conflict)
	more := jobs(faults.Crash, faults.Stale)
	for name, test := range map[string]struct {
		hasBudget bool
		missed    faults.Kind
		want      []faults.Kind
	}{
		"by kind": {true, "", []faults.Kind{faults.Crash, faults.Reset, faults.Conflict, faults.Crash, faults.Reset, faults.Stale, faults.Crash}},
		"a kind that does not happen": {true, faults.Reset,
			[]faults.Kind{faults.Crash, faults.Reset, faults.Reset, faults.Conflict, faults.Crash, faults.Stale, faults.Crash}},
		"without a budget": {false, "", []faults.Kind{faults.Crash, faults.Crash, faults.Reset, faults.Reset, faults.Conflict, faults.Stale}},
		"a planned kind that does not happen": {false, faults.Crash,
			[]faults.Kind{faults.Crash, faults.Crash, faults.Reset, faults.Reset, faults.Conflict, faults.Crash, faults.Stale}},
	} {
		if got := kindsInOrder(newJobQueue(planned, more, test.hasBudget), test.missed); !slices.Equal(got, test.want) {
			t.Errorf("%s: the kinds are %v, want %v", name, got, test.want)
		}
	}
}
