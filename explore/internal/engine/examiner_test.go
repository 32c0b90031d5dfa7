package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// examine examines a run with a crash whose runs have these verdicts in turn, and returns what was recorded.
func examine(t *testing.T, verdicts ...finding.Verdict) finding.Record {
	t.Helper()
	var mu sync.Mutex
	makeRun := func(context.Context, finding.Schedule, waitLimits, compareState) (*runResult, error) {
		mu.Lock()
		defer mu.Unlock()
		out := &runResult{verdict: verdicts[0]}
		if out.verdict != "" {
			out.differences = finding.Differences{{Object: "configmaps/a"}}
		}
		verdicts = verdicts[1:]
		return out, nil
	}
	results := newResults("operator", Settings{})
	e := examiner{run: makeRun, references: &references{}, checks: newChecks(nil), results: results, repeatsTogether: true}
	j := job{kind: faults.Crash, schedule: finding.Schedule{Faults: []faults.Fault{{Kind: faults.Crash}}}}
	if _, err := e.examine(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if len(verdicts) > 0 {
		t.Errorf("%d runs were not made", len(verdicts))
	}
	return results.snapshot()
}

// A finding is a verdict that at least one of two repetitions shows.
func TestFindingsAreConfirmed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verdicts []finding.Verdict
		want     []finding.Verdict
	}{
		"nothing":                   {[]finding.Verdict{""}, nil},
		"seen once":                 {[]finding.Verdict{finding.Wrong, "", ""}, nil},
		"seen twice":                {[]finding.Verdict{finding.Wrong, "", finding.Wrong}, []finding.Verdict{finding.Wrong}},
		"destroyed once":            {[]finding.Verdict{finding.Destroyed, "", ""}, []finding.Verdict{finding.Destroyed}},
		"late after longer waits":   {[]finding.Verdict{finding.Wrong, finding.Late, finding.Late}, []finding.Verdict{finding.Late}},
		"another verdict each time": {[]finding.Verdict{finding.Wrong, finding.Busy, finding.Exited}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := examine(t, slices.Clone(test.verdicts)...)
			var got []finding.Verdict
			for _, f := range record.Findings {
				got = append(got, f.Verdict)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the findings are %q, want %q", got, test.want)
			}
			if record.Coverage.Runs != len(test.verdicts) || record.Coverage.Kinds[faults.Crash].Done != 1 {
				t.Errorf("the coverage is %+v", record.Coverage)
			}
		})
	}
}

// A finding whose repetitions cannot be made, because the time has ended, is not lost. Its fault has happened: an exploration had
// a finding of a kind of fault, and reported that no fault of this kind ever happened.
func TestFindingBeforeTheEndIsUnconfirmed(t *testing.T) {
	t.Parallel()
	ended := errors.New("the time has ended")
	for verdict, isWarning := range map[finding.Verdict]bool{finding.Wrong: true, finding.Destroyed: false} {
		runs := 0
		ctx, cancel := context.WithCancelCause(t.Context())
		makeRun := func(context.Context, finding.Schedule, waitLimits, compareState) (*runResult, error) {
			if runs++; runs > 1 {
				cancel(ended)
				return nil, ended
			}
			return &runResult{verdict: verdict, differences: finding.Differences{{Object: "configmaps/a"}}}, nil
		}
		results := newResults("operator", Settings{})
		e := examiner{run: makeRun, references: &references{}, checks: newChecks(nil), results: results}
		_, err := e.examine(ctx, job{kind: faults.Crash, schedule: finding.Schedule{Faults: []faults.Fault{{Kind: faults.Crash}}}})
		record := results.snapshot()
		if record.Coverage.Kinds[faults.Crash].Done != 1 {
			t.Errorf("%s: the run is not counted: %v", verdict, record.Coverage.Kinds)
		}
		found := record.Findings
		if !errors.Is(err, ended) || len(found) != 1 || !found[0].IsUnconfirmed || found[0].IsWarning() != isWarning {
			t.Errorf("%s: the findings are %+v, %v", verdict, found, err)
		}
	}
}

// The repetitions of a finding are made at the same time, unless the user has chosen how many runs are made at a time, or the
// runs need the control plane for themselves.
func TestRepetitionsAtTheSameTime(t *testing.T) {
	t.Parallel()
	stop := faults.Faults{{Kind: faults.ServerKilled}}
	for name, test := range map[string]struct {
		faults          faults.Faults
		repeatsTogether bool
		want            int
	}{
		"default":                      {nil, true, confirmations},
		"a chosen number of runs":      {nil, false, 1},
		"a fault of the control plane": {stop, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int32
				makeRun := func(context.Context, finding.Schedule, waitLimits, compareState) (*runResult, error) {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Minute)
					now.Add(-1)
					return &runResult{}, nil
				}
				e := examiner{run: makeRun, repeatsTogether: test.repeatsTogether}
				all := e.repeatAll(t.Context(), job{schedule: finding.Schedule{Faults: test.faults}}, expectAnyState)
				if len(all) != confirmations || int(most.Load()) != test.want {
					t.Errorf("%d repetitions, %d at the same time, want %d at the same time", len(all), most.Load(), test.want)
				}
			})
		})
	}
}
