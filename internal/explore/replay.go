package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/report"
)

// Replay makes the run of a finding again, tries times, and returns the finding with the results of these runs.
// Seen is 0 if no run has the verdict.
func Replay(ctx context.Context, operator Launcher, o Settings, f finding.Finding, tries int) (seen finding.Finding, err error) {
	o.Steps = f.Schedule.Steps
	e, err := newExplorer(ctx, operator, o)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.makeReferences(ctx); err != nil {
		return f, err
	}
	clear(e.checks.hasFailed) // a check that fails without faults is replayed too
	f.Seen, f.Tries = 0, 0
	j := job{schedule: f.Schedule}
	if len(f.Schedule.Faults) == 0 {
		j.field = "the steps"
	}
	judge, err := e.judgeOf(ctx, j)
	if err != nil {
		return f, err
	}
	for range tries {
		out, err := e.run(ctx, j.schedule, e.patient(), judge)
		if err != nil {
			return f, err
		}
		e.judgeHistory(j, out)
		f.Tries++
		if out.problem == f.Verdict {
			f.Seen++
			f.Differences, f.Trace = out.differences, out.trace
		}
	}
	return f, nil
}

// ReplayFile replays the findings in a file of [report.WriteFile], and returns the findings that are seen again.
// Checks that are not among the options cannot fail. A condition that never held is no run, and is left out.
func ReplayFile(ctx context.Context, operator Launcher, o Settings, path string, tries int) (finding.Record, error) {
	again := finding.Record{Coverage: finding.Coverage{Operator: operator.String(), Complete: true}}
	record, err := report.ReadFile(path)
	if err != nil {
		return again, err
	}
	record.Findings = slices.DeleteFunc(record.Findings, func(f finding.Finding) bool { return f.Verdict == finding.NeverHeld })
	if len(record.Findings) == 0 {
		return again, fmt.Errorf("%s has no finding that can be replayed", path)
	}
	for _, f := range record.Findings {
		got, err := Replay(ctx, operator, o, f, tries)
		if err != nil {
			return again, err
		}
		again.Coverage.Runs += got.Tries
		if got.Seen > 0 {
			again.Findings = append(again.Findings, got)
		} else {
			again.Coverage.NotSeenAgain = append(again.Coverage.NotSeenAgain, report.Summary(got))
		}
	}
	return again, nil
}
