package explore

import (
	"errors"
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// The exit statuses are those of the guide: a finding wins over everything.
func TestExitStatuses(t *testing.T) {
	t.Parallel()
	failure := errors.New("the server is away")
	found := []finding.Finding{{Verdict: finding.Wrong}}
	late := []finding.Finding{{Verdict: finding.Late}}
	for name, test := range map[string]struct {
		coverage finding.Coverage
		findings []finding.Finding
		failure  error
		want     int
	}{
		"nothing found":                         {finding.Coverage{IsComplete: true}, nil, nil, 0},
		"each kind has happened":                {finding.Coverage{IsComplete: false}, nil, nil, 0},
		"a warning":                             {finding.Coverage{IsComplete: true}, late, nil, 0},
		"a finding":                             {finding.Coverage{IsComplete: true}, found, nil, 1},
		"a finding, and a kind never happened":  {finding.Coverage{NeverHappened: []faults.Kind{faults.Reset}}, found, nil, 1},
		"a finding before a failure":            {finding.Coverage{Stopped: "the server is away"}, found, failure, 1},
		"a failure":                             {finding.Coverage{Stopped: "the server is away"}, late, failure, 2},
		"nothing was compared":                  {finding.Coverage{IsComplete: true, ComparedSteps: finding.Count{Total: 2}}, nil, nil, 2},
		"a kind never happened":                 {finding.Coverage{IsComplete: true, NeverHappened: []faults.Kind{faults.Conflict}}, nil, nil, 3},
		"the time ended in runs without faults": {finding.Coverage{Stopped: "the time ended"}, nil, nil, 3},
	} {
		got := 0
		if err := statusOf(finding.Record{Coverage: test.coverage, Findings: test.findings}, test.failure); err != nil {
			status, ok := errors.AsType[statusError](withStatus(err))
			if !ok {
				t.Fatalf("%s: the error %v has no status", name, err)
			}
			got = status.ExitStatus()
		}
		if got != test.want {
			t.Errorf("%s: the status is %d, want %d", name, got, test.want)
		}
	}
}
