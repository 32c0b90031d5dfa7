package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// oneValueStates holds the states of programs that have seen only one value of the samples. Its methods are safe for
// concurrent use.
type oneValueStates struct {
	run     runFunc
	cluster *cluster
	results *results
	options history.Options
	limits  waitLimits
	// reference is what a reference shows of the samples.
	reference sampleReference

	mu sync.Mutex
	// states returns each state by the text of the samples. The first call for a text makes the runs.
	states map[string]func() (oneValueState, error)
}

// sampleReference is what a reference shows of the samples after the first step.
type sampleReference struct {
	oneValueState
	// text is the text of the samples: see [cluster.appliedUntil].
	text string
	// hasMadeObjects is true if the program has made objects.
	hasMadeObjects bool
	// errorShapes are the shapes of the errors that the program has logged in the references: see [errorShape].
	errorShapes map[string]bool
}

// oneValueState is the state of programs that have seen only one value of the samples.
type oneValueState struct {
	state history.State
	// masks are nil if nobody knows the right state. reason says why.
	masks  *history.Masks
	reason string
}

// stateOf returns the state of programs that have seen only these objects. Error: a run could not be made.
func (o *oneValueStates) stateOf(ctx context.Context, text string, objects []json.RawMessage) (oneValueState, error) {
	if text == o.reference.text {
		return o.reference.oneValueState, nil
	}
	o.mu.Lock()
	state, has := o.states[text]
	if !has {
		state = sync.OnceValues(func() (oneValueState, error) { return o.makeRuns(ctx, objects) })
		o.states[text] = state
	}
	o.mu.Unlock()
	return state()
}

// oneValueRuns is how many runs show the state. What differs between these runs is masked.
const oneValueRuns = 2

// makeRuns makes the runs that show the state, and returns the state. The state has no masks if the objects are
// unusable: the program ends with an error, ends its log of errors with an error that the references do not log, or
// makes no object although it makes some in the references. To keep the last good state is right then.
func (o *oneValueStates) makeRuns(ctx context.Context, objects []json.RawMessage) (oneValueState, error) {
	var states []history.State
	unusable := 0
	for range oneValueRuns {
		out, err := o.run(ctx, finding.Schedule{Steps: []finding.Step{{Name: "apply", Apply: objects}}},
			o.limits, expectAnyState)
		if err != nil {
			return oneValueState{}, err
		}
		o.results.update(func(c *finding.Coverage) { c.Runs, c.References = c.Runs+1, c.References+1 })
		states = append(states, out.states[0])
		if o.isUnusable(objects, out) {
			unusable++
		}
	}
	if unusable == oneValueRuns {
		return oneValueState{
			state: states[0], reason: "a program that starts with these objects reports an error, or makes no object",
		}, nil
	}
	masks, err := history.NewMasks(states, o.options)
	if err != nil {
		warning := "The states after some changes of the sample are not compared, because runs with these values alone differ: " + oneLine(err)
		o.results.update(func(c *finding.Coverage) { c.Warnings = insert(c.Warnings, warning) })
		return oneValueState{}, nil
	}
	return oneValueState{state: states[0], masks: masks}, nil
}

// isUnusable reports whether a run shows that a program cannot use the objects that the user applies.
func (o *oneValueStates) isUnusable(objects []json.RawMessage, out *runResult) bool {
	if last := out.lastError(); out.verdict != "" || last != "" && !o.reference.errorShapes[errorShape(last)] {
		return true
	}
	return o.reference.hasMadeObjects && len(madeObjects(out.states[0], o.options, o.cluster.namesOf(objects))) == 0
}

// recordWaiting records the objects that the user has deleted and that wait for a finalizer, and reports whether there
// are any. Then nobody knows the right state, even if the user has applied such an object again.
func (o *oneValueStates) recordWaiting(steps []finding.Step, state history.State) (isWaiting bool) {
	for _, v := range state.Objects() {
		object, finalizers := faults.Object{Resource: v.Resource, Name: v.Name}, v.Content().GetFinalizers()
		isDeleted := slices.ContainsFunc(steps, func(s finding.Step) bool { return slices.Contains(s.Delete, object) })
		if isDeleted && v.Content().GetDeletionTimestamp() != nil && len(finalizers) > 0 {
			o.results.addWaiting(fmt.Sprintf("%s: %v", object, finalizers))
			isWaiting = true
		}
	}
	return isWaiting
}

// comparison returns the comparison of a run in which the user changes the declared state: the state after a step must
// be the state of a program that has seen only the values of the step. The state after a step that applies
// nothing is not compared, nor is the state after a step whose values are unusable.
func (o *oneValueStates) comparison(ctx context.Context, steps []finding.Step) (compareState, error) {
	expected := make([]oneValueState, len(steps))
	for i, step := range steps {
		if len(step.Apply) == 0 || step.IsUncompared {
			continue
		}
		text, objects, err := o.cluster.appliedUntil(steps, i)
		if err != nil {
			return nil, err
		}
		expected[i], err = o.stateOf(ctx, text, objects)
		switch {
		case errors.Is(err, ErrNoReference):
			expected[i].reason = err.Error()
		case err != nil:
			return nil, err
		}
		if reason := expected[i].reason; reason != "" {
			o.results.update(func(c *finding.Coverage) { c.Uncompared = insert(c.Uncompared, step.Name+": "+reason) })
		}
	}
	return func(step int, state history.State) []finding.Difference {
		s := expected[step]
		if s.masks == nil {
			return nil
		}
		if o.recordWaiting(steps[:step+1], state) {
			return nil
		}
		return s.masks.Compare(s.state, state, faults.Transition)
	}, nil
}
