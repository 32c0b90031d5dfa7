package engine

import (
	"slices"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// outcome is the result of a run.
type outcome struct {
	// states are the objects at the rest after each step.
	states   []history.State
	history  history.History
	requests []proxy.Request
	// problem is the verdict that ended the run, or empty. differences are the differences after problemStep.
	problem     finding.Verdict
	problemStep int
	differences finding.Differences
	// isViolated is true if a check that must always hold has failed.
	isViolated bool
	// missed are the faults that did not happen.
	missed []faults.Fault
	// refused are the writes of the program that the API server found invalid, and which the program has
	// reported to the user.
	refused []string
	// notApplicable are the faults that the program gave no opportunity for.
	notApplicable []faults.Fault
	began         time.Time
	trace         []finding.Event
	deliveries    []proxy.Delivery
	// errorLine is the last line with an error in the log of the program, or empty.
	errorLine string
}

// longestPause returns the longest time in which nothing happened within a step.
func (o *outcome) longestPause() (longest time.Duration) {
	for step := range o.states {
		var times []time.Time
		for _, v := range o.history.Versions {
			if v.Step == step && v.Resource != proxy.Leases {
				times = append(times, v.At)
			}
		}
		for _, r := range o.requests {
			if r.Point.Step == step && isPoint(r) {
				times = append(times, r.Began)
			}
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := 1; i < len(times); i++ {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
	}
	return longest
}
