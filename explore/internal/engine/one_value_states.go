package engine

import (
	"context"
	"encoding/json"
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

	mu sync.Mutex
	// states return the states by the text of the samples. The first call makes the runs.
	states map[string]func() (oneValueState, error)
}

// oneValueState is the state of programs that have seen only one value of the samples.
type oneValueState struct {
	state history.State
	// masks is nil if the programs differ, so that nothing can be compared.
	masks *history.Masks
}

// get returns the state of programs that have seen only these objects. Error: a run could not be made.
func (f *oneValueStates) get(ctx context.Context, text string, objects []json.RawMessage) (oneValueState, error) {
	f.mu.Lock()
	state, has := f.states[text]
	if !has {
		state = sync.OnceValues(func() (oneValueState, error) { return f.observe(ctx, objects) })
		f.states[text] = state
	}
	f.mu.Unlock()
	return state()
}

// oneValueRuns is how many runs show the state. What differs between these runs is masked.
const oneValueRuns = 2

// observe makes the runs that show the state.
func (f *oneValueStates) observe(ctx context.Context, objects []json.RawMessage) (oneValueState, error) {
	var states []history.State
	for range oneValueRuns {
		out, err := f.run(ctx, finding.Schedule{Steps: []finding.Step{{Name: "apply", Apply: objects}}}, f.limits, expectNothing)
		if err != nil {
			return oneValueState{}, err
		}
		f.results.update(func(c *finding.Coverage) { c.Runs, c.References = c.Runs+1, c.References+1 })
		states = append(states, out.states[0])
	}
	masks, err := history.Mask(states, f.options)
	if err != nil {
		warning := "The states after some changes of the sample are not compared, because runs with these values alone differ: " + oneLine(err)
		f.results.update(func(c *finding.Coverage) { c.Warnings = insert(c.Warnings, warning) })
		return oneValueState{}, nil
	}
	return oneValueState{states[0], masks}, nil
}

// comparison returns the comparison of a run in which the user changes the declared state: the state after a step must
// be the state of a program that has seen only the values of the step. The state after a step that applies
// nothing is not compared.
func (f *oneValueStates) comparison(ctx context.Context, steps []finding.Step) (compareState, error) {
	expected := make([]oneValueState, len(steps))
	for i, step := range steps {
		if len(step.Apply) == 0 {
			continue
		}
		text, objects, err := f.cluster.appliedUntil(steps, i)
		if err != nil {
			return nil, err
		}
		if expected[i], err = f.get(ctx, text, objects); err != nil {
			return nil, err
		}
	}
	return func(step int, state history.State) []finding.Difference {
		if s := expected[step]; s.masks != nil {
			return s.masks.Compare(s.state, state, faults.Transition)
		}
		return nil
	}, nil
}
