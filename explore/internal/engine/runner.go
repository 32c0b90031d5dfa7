package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
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
	// externalSystem is the external system. Its fields may be empty.
	externalSystem *ExternalSystem
	// steps are the steps of the exploration. A run may have other steps.
	steps []finding.Step
	// election is the election of the program in the references. It is nil before the references are made, and if the
	// program elects no leader.
	election *election
	// webhooks takes the calls of the API server to a compiled program.
	webhooks *webhookFront
	// servesCalls is true if API servers call the program: it has published webhook configurations or a conversion in a
	// reference. hasWebhooks is true if it has published webhook configurations.
	servesCalls, hasWebhooks bool
	// rules checks the rules in all runs that run makes.
	rules *ruleJudge
}

// runFunc makes one run: see [runner.run].
type runFunc func(ctx context.Context, s finding.Schedule, limits waitLimits, compare compareState) (*runResult, error)

// run makes one run, and checks the rules in it. An error means that the run could not be made. It is no verdict on the
// program.
func (n *runner) run(
	ctx context.Context, s finding.Schedule, limits waitLimits, compare compareState,
) (*runResult, error) {
	out, err := n.runWithoutRules(ctx, s, limits, compare)
	if err != nil {
		return nil, err
	}
	return out, n.rules.judge(ctx, s, out)
}

// runWithoutRules makes one run, and compares its states. It checks no rules.
func (n *runner) runWithoutRules(
	ctx context.Context, s finding.Schedule, limits waitLimits, compare compareState,
) (*runResult, error) {
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	r := &run{
		runner: n, schedule: s, limits: limits, compare: compare, folder: folder, output: &output{}, trace: newTrace(),
		activity: n.results.activities.begin(describeRun(s)),
	}
	defer r.activity.end()
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(err, r.end())
	}
	for i, step := range s.Steps {
		if err := r.runStep(ctx, i, step); err != nil {
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
