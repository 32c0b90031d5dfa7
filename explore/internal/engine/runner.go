package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// userManager is the field manager of the user.
const userManager = "explorer-user"

// runner makes runs of an operator.
type runner struct {
	launcher    Launcher
	cluster     *cluster
	permissions *permissions
	namespaces  *namespaces
	recorder    *history.Recorder
	checks      *checks
	results     *results
	options     history.Options
	// components stops and starts the components of the control plane. It is nil if they may not be stopped.
	components faults.Components
	// outside is the external system. Its fields may be empty.
	outside *Outside
	// steps are the steps of the exploration. A run may have other steps.
	steps []finding.Step
	// election is the election of the program in the references. It is nil before the references are made, and if the
	// program elects no leader.
	election *election
	// webhooks takes the calls of the API server to a compiled program.
	webhooks *webhookFront
	// servesCalls is true if API servers call the program: it has published webhook configurations or a conversion in a reference.
	// hasWebhooks is true if it has published webhook configurations.
	servesCalls, hasWebhooks bool
	// rules judges all runs. It is nil for runs that nobody judges.
	rules *ruleJudge
}

// runFunc makes one run: see [runner.run].
type runFunc func(ctx context.Context, s finding.Schedule, limits waitLimits, compare compareState) (*runResult, error)

// run makes one run, and judges it by the rules. An error means that the run could not be made. It is no verdict on the
// program.
func (n *runner) run(ctx context.Context, s finding.Schedule, limits waitLimits, compare compareState) (*runResult, error) {
	out, err := n.observe(ctx, s, limits, compare)
	if err != nil {
		return nil, err
	}
	return out, n.rules.judge(ctx, s, out)
}

// observe makes one run, and judges it by the comparison alone.
func (n *runner) observe(ctx context.Context, s finding.Schedule, limits waitLimits, compare compareState) (*runResult, error) {
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	r := &run{runner: n, schedule: s, folder: folder, output: &output{}, trace: newTrace(), activity: n.results.activities.begin(describeRun(s))}
	defer r.activity.end()
	if err := r.begin(ctx, limits); err != nil {
		return nil, errors.Join(err, r.end())
	}
	for i, step := range s.Steps {
		if err := r.runStep(ctx, i, step, limits, compare); err != nil {
			return nil, errors.Join(&stepError{i, step.Name, err}, r.end())
		}
		if r.result.verdict != "" {
			break
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return &r.result, nil
}

// describeRun returns the run of a schedule in a line.
func describeRun(s finding.Schedule) string {
	switch {
	case len(s.Faults) > 0:
		return s.Faults[0].String()
	case len(s.Steps) == 1:
		return "run of the program with one value"
	}
	return fmt.Sprintf("run without faults, with the step %q among %d", s.Steps[1].Name, len(s.Steps))
}

// stepError is an error in a step of the user.
type stepError struct {
	index int
	name  string
	err   error
}

// Error implements error.
func (e *stepError) Error() string { return fmt.Sprintf("step %d (%s): %v", e.index+1, e.name, e.err) }

// Unwrap returns the error itself.
func (e *stepError) Unwrap() error { return e.err }

// waitLimits holds how long a run waits.
type waitLimits struct {
	// window is how long nothing may happen at rest.
	window time.Duration
	// rest is how long the run waits for the rest after a step.
	rest time.Duration
	// converge is how long a wrong state may take to become right.
	converge time.Duration
	// delay is added to each request, for the slow reference.
	delay time.Duration
}

// forConfirmation returns the limits of a run that confirms a finding. They are longer.
func (l waitLimits) forConfirmation() waitLimits {
	l.window, l.rest, l.converge = 2*l.window, 3*l.rest, 5*l.converge
	return l
}

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
	// outsideParts is how many parts of data passed to the external system and back in each step.
	outsideParts []int
	// isViolated is true if a check that must always hold has failed.
	isViolated bool
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
	// errorLine is the last line with an error in the log of the program, or empty.
	errorLine string
}

// describe sets what f shows of the run: the differences, the step, and the trace.
func (r *runResult) describe(f *finding.Finding) {
	f.Differences, f.Trace, f.StepNumber = r.differences, r.trace, 0
	if r.verdict.IsAboutState() {
		f.StepNumber = r.verdictStep + 1
	}
}

// notApplicable is a fault that cannot happen to a program, and why.
type notApplicable struct {
	fault  faults.Fault
	reason string
}

// hasHappened reports whether all faults of the run have happened.
func (o *runResult) hasHappened() bool { return len(o.missed) == 0 && len(o.notApplicable) == 0 }

// longestPause returns the longest time in which nothing happened within a step.
func (o *runResult) longestPause() (longest time.Duration) {
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
