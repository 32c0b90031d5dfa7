package engine

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/schedule"
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
	// plane is the control plane, or nil if its components may not be stopped.
	plane faults.Plane
	// steps are the steps of the exploration. A run may have other steps.
	steps []schedule.Step
	// election is the election of the program in the references. It is nil before the references are made, and if the
	// program elects no leader.
	election *election
}

// runFunc makes one run: see [runner.run].
type runFunc func(ctx context.Context, s schedule.Schedule, wait patience, compare compareState) (*outcome, error)

// run makes one run. An error means that the run could not be made. It is no verdict on the program.
func (n *runner) run(ctx context.Context, s schedule.Schedule, wait patience, compare compareState) (*outcome, error) {
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	r := &run{runner: n, schedule: s, folder: folder, output: &output{}, trace: newTrace()}
	if err := r.begin(ctx, wait); err != nil {
		return nil, errors.Join(err, r.end())
	}
	for i, step := range s.Steps {
		if err := r.runStep(ctx, i, step, wait, compare); err != nil {
			return nil, errors.Join(&stepError{i, step.Name, err}, r.end())
		}
		if r.outcome.problem != "" {
			break
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return &r.outcome, nil
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
