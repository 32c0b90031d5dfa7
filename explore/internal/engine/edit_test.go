package engine

import "testing"

func TestEditOf(t *testing.T) {
	t.Parallel()
	written := func(field string) map[string]any {
		return map[string]any{"managedFields": []any{map[string]any{
			"manager": "operator", "fieldsV1": map[string]any{"f:" + field: map[string]any{"f:a": map[string]any{}}},
		}}}
	}
	for name, test := range map[string]struct {
		resource string
		object   map[string]any
		want     string
	}{
		"text": {"configmaps", map[string]any{"metadata": written("data"), "data": map[string]any{"a": "hi"}}, `{"data":{"a":"hix"}}`},
		// The server refuses what is not base64.
		"a value of a Secret":   {"secrets", map[string]any{"metadata": written("data"), "data": map[string]any{"a": "aGk="}}, `{"data":{"a":"aGl4"}}`},
		"a number":              {"deployments.apps", map[string]any{"metadata": written("spec"), "spec": map[string]any{"a": 1.0}}, `{"spec":{"a":2}}`},
		"text of other objects": {"deployments.apps", map[string]any{"metadata": written("spec"), "spec": map[string]any{"a": "hi"}}, ""},
		"a status":              {"deployments.apps", map[string]any{"metadata": written("status"), "status": map[string]any{"a": 1.0}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(editOf(test.resource, test.object)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
