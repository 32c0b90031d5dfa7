package engine

import (
	"slices"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// runResult is the result of a run.
type runResult struct {
	// states are the objects at the rest after each step.
	states   []history.State
	history  history.History
	requests []proxy.RequestRecord
	// verdict is the verdict that ended the run, or empty. differences are the differences after verdictStep.
	verdict     finding.Verdict
	verdictStep int
	differences finding.Differences
	// externalParts is how many parts of data passed to the external system and back in each step.
	externalParts []int
	// hasFailedCheck is true if a check that must always hold has failed.
	hasFailedCheck bool
	// missed are the faults that did not happen.
	missed []faults.Fault
	// refused are the writes of the program that the API server found invalid and the program has reported to the
	// user.
	refused []string
	// notApplicable are the faults that cannot happen to the program.
	notApplicable []notApplicable
	began         time.Time
	trace         []finding.Event
	deliveries    []proxy.Delivery
	observations  []proxy.Observation
	// violations are where the run breaks rules.
	violations []rules.Violation
	// errorLines are the lines with errors in the log of the program, in the order in which they were written.
	errorLines []string
}

// lastError returns the last line with an error in the log of the program, or an empty text.
func (r *runResult) lastError() string {
	if len(r.errorLines) == 0 {
		return ""
	}
	return r.errorLines[len(r.errorLines)-1]
}

// recordVerdict records a verdict after a step, with the differences that show it. Only the first verdict of the run
// counts.
func (r *runResult) recordVerdict(v finding.Verdict, step int, differences []finding.Difference) {
	if r.verdict == "" {
		r.verdict, r.verdictStep, r.differences = v, step, differences
	}
}

// setEvidence sets what a finding shows of the run: the differences, the step, and the trace.
func (r *runResult) setEvidence(f *finding.Finding) {
	f.Differences, f.Trace, f.StepNumber = r.differences, r.trace, 0
	if r.verdict.IsAboutState() {
		f.StepNumber = r.verdictStep + 1
	}
}

// hasHappened reports whether all faults of the run have happened.
func (r *runResult) hasHappened() bool { return len(r.missed) == 0 && len(r.notApplicable) == 0 }

// longestPause returns the longest time in which nothing happened within a step.
func (r *runResult) longestPause() (longest time.Duration) {
	for step := range r.states {
		var times []time.Time
		for _, v := range r.history.Versions {
			if v.Step == step && v.Resource != proxy.Leases {
				times = append(times, v.At)
			}
		}
		for _, request := range r.requests {
			if request.Point.Step == step && isPoint(request) {
				times = append(times, request.Began)
			}
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := 1; i < len(times); i++ {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
	}
	return longest
}

// notApplicable is a fault that cannot happen to a program, and why.
type notApplicable struct {
	fault  faults.Fault
	reason string
}
