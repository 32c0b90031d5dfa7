package explore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// freshState is the state of programs that have seen only one value of the samples.
type freshState struct {
	done  chan struct{}
	state history.State
	masks *history.Masks
	err   error
}

// freshRuns is how many runs show the state of a fresh program, so that what differs is masked.
const freshRuns = 2

// freshOf returns the state of programs that have seen only these objects.
func (e *explorer) freshOf(ctx context.Context, text string, objects []json.RawMessage) (*freshState, error) {
	e.mu.Lock()
	f, has := e.fresh[text]
	if !has {
		f = &freshState{done: make(chan struct{})}
		e.fresh[text] = f
	}
	e.mu.Unlock()
	if has {
		select {
		case <-f.done:
			return f, f.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer close(f.done)
	s := schedule.Schedule{Steps: []schedule.Step{{Name: "apply", Apply: objects}}}
	var states []history.State
	for range freshRuns {
		out, err := e.run(ctx, s, e.patient(), expectNothing)
		if err != nil {
			f.err = err
			return nil, err
		}
		e.countRun(&e.coverage.Runs)
		e.countRun(&e.coverage.References)
		states = append(states, out.states[0])
	}
	f.state = states[0]
	f.masks, f.err = history.Mask(states, e.historyOptions())
	return f, f.err
}

// judgeValues returns a judge of a run in which the user changes the declared state: the state after a step must
// be the state of a fresh program that has seen only the values of the step. Objects that the step deletes are
// compared with the references.
func (e *explorer) judgeValues(ctx context.Context, s schedule.Schedule) (judge, error) {
	fresh := make([]*freshState, len(s.Steps))
	for i, step := range s.Steps {
		if len(step.Apply) == 0 {
			continue
		}
		text, objects, err := e.appliedUntil(s.Steps, i)
		if err != nil {
			return nil, err
		}
		if fresh[i], err = e.freshOf(ctx, text, objects); err != nil {
			return nil, err
		}
	}
	return func(step int, state history.State) []finding.Difference {
		if f := fresh[step]; f != nil {
			return f.masks.Compare(f.state, state, faults.Transition)
		}
		return nil
	}, nil
}

// appliedUntil returns the objects that the user has applied and not deleted up to a step, and a text
// that is equal for equal objects.
func (e *explorer) appliedUntil(steps []schedule.Step, step int) (text string, objects []json.RawMessage, err error) {
	latest := make(map[faults.Object]json.RawMessage)
	for _, s := range steps[:step+1] {
		for _, raw := range s.Apply {
			object, err := e.decode(raw, "")
			if err != nil {
				return "", nil, err
			}
			api, err := e.apiOf(object.GroupVersionKind(), "")
			if err != nil {
				return "", nil, err
			}
			latest[faults.Object{Resource: resourceName(api.Resource()), Name: object.GetName()}] = raw
		}
		for _, o := range s.Delete {
			delete(latest, o)
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(latest), func(a, b faults.Object) int { return strings.Compare(a.String(), b.String()) }) {
		objects = append(objects, latest[o])
		text += canonical(latest[o]) + "\n"
	}
	return text, objects, nil
}
