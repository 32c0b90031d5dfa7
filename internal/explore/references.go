package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
)

const (
	// minWindow is the least time without a change after which a run is at rest.
	minWindow = 300 * time.Millisecond
	// referenceWindow is that time in the reference runs, and the longest such time in other runs.
	referenceWindow = 1500 * time.Millisecond
	// slowDelay is added to each request of the slow reference.
	slowDelay = 40 * time.Millisecond
	// referenceCount is the number of references, the last of which is slow.
	referenceCount = 3
)

// expectNothing returns no difference. It judges runs that show what is expected of other runs.
func expectNothing(int, history.State) []finding.Difference { return nil }

// makeReferences makes the reference runs. The first one shows whether the others can be made at the same time.
func (e *explorer) makeReferences(ctx context.Context) error {
	wait := patience{window: referenceWindow, rest: time.Minute}
	var silence time.Duration
	outcomes, errs := make([]*outcome, referenceCount), make([]error, referenceCount)
	var running sync.WaitGroup
	for i := range referenceCount {
		wait := wait
		if i == referenceCount-1 {
			wait.delay = slowDelay
		}
		running.Go(func() {
			outcomes[i], errs[i] = e.run(ctx, schedule.Schedule{Steps: e.options.Steps}, wait, expectNothing)
		})
		if i == 0 || e.mustRunAlone() {
			running.Wait()
		}
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, out := range outcomes {
		e.coverage.Runs++
		e.coverage.References++
		if out.problem != "" {
			return fmt.Errorf("%w: reference run %d: %s: %s", ErrNoReference, i+1, out.problem, out.differences)
		}
		if i < referenceCount-1 {
			silence = max(silence, out.silence())
		}
		e.references = append(e.references, out)
	}
	e.checkReferences()
	e.coverage.Warnings = append(e.coverage.Warnings, e.doubts()...)
	for step := range e.options.Steps {
		var states []history.State
		for _, r := range e.references {
			states = append(states, r.states[step])
		}
		masks, err := history.Mask(states, e.historyOptions())
		if err != nil {
			return fmt.Errorf("%w: after step %d (%s): %w", ErrNoReference, step+1, e.options.Steps[step].Name, err)
		}
		e.masks = append(e.masks, masks)
		for _, path := range masks.Varying() {
			if !slices.Contains(e.coverage.Masked, path) {
				e.coverage.Masked = append(e.coverage.Masked, path)
			}
		}
	}
	if e.mustRunAlone() {
		e.options.Parallel = 1
	}
	e.wait = patience{
		window: min(max(silence+silence/2, minWindow), referenceWindow),
		rest:   20 * time.Second,
		heal:   12 * time.Second,
	}
	if election, isElecting := electionOf(e.references[0].requests); isElecting {
		e.election = &election
		e.wait.rest += election.takeOverTime()
	}
	return nil
}

// mustRunAlone reports whether one run is made at a time: objects in no namespace would be shared by
// runs at the same time.
func (e *explorer) mustRunAlone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.options.Parallel == 1 || len(e.coverage.ClusterScoped) > 0
}
