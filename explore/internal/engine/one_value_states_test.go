package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
)

// Regression: runs without faults that differ are no stable reference, also those that show the state of a program that has seen one value only
// with another value. The command ended with the status of a finding.
func TestFreshRunsThatDifferAreNoReference(t *testing.T) {
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
		results: newResults("webapp", 1, nil),
		states:  make(map[string]func() (oneValueState, error)),
	}
	_, err := f.get(t.Context(), "size: 2", nil)
	if !errors.Is(err, ErrNoReference) || !strings.Contains(err.Error(), "is in 1 of 2 reference runs") {
		t.Errorf("the error is %v, want %v and the object", err, ErrNoReference)
	}
}
