package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
)

// Regression: a value with which runs without faults differ ended the exploration, with the status of a finding. It costs the
// comparison with this value.
func TestValueWithoutReferenceIsNotCompared(t *testing.T) {
	t.Parallel()
	page := history.Version{Resource: "configmaps", Name: "page", UID: "1", ResourceVersion: "1", Manager: "webapp", Object: map[string]any{
		"metadata": map[string]any{"managedFields": []any{map[string]any{
			"manager": "webapp", "operation": "Apply", "fieldsV1": map[string]any{"f:data": map[string]any{"f:text": map[string]any{}}},
		}}},
		"data": map[string]any{"text": "hello"},
	}}
	histories := []history.History{{Versions: []history.Version{page}}, {}}
	f := &oneValueStates{
		run: func(context.Context, finding.Schedule, waitLimits, compareState) (*runResult, error) {
			state := histories[0].State()
			histories = histories[1:]
			return &runResult{states: []history.State{state}}, nil
		},
		results: newResults("webapp", Settings{}),
		states:  make(map[string]func() (oneValueState, error)),
	}
	state, err := f.stateOf(t.Context(), "size: 2", nil)
	if err != nil || state.masks != nil {
		t.Errorf("the state is %+v, %v", state, err)
	}
	warnings := f.results.snapshot().Coverage.Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0], "configmaps/page is in 1 of 2 reference runs") {
		t.Errorf("the warnings are %q", warnings)
	}
}
