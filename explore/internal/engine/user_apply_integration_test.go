package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// BoxSpec has a map and a list that must not be null.
type BoxSpec struct {
	Options map[string]string `json:"options"`
	Tags    []string          `json:"tags"`
}

// Definition returns the definition of boxes.
func (BoxSpec) Definition() kube.Definition {
	return kube.Definition{Group: "engine.example.com", Version: "v1", Kind: "Box"}
}

// Regression: an exploration ended with spec.options: Invalid value: "null", because the server makes null of a map that an
// apply empties.
func TestUserEmptiesAMap(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster := yaretest.Shared(t)
	yaretest.Define[kube.CustomResource[BoxSpec, kube.None]](t, cluster)
	namespace := cluster.Namespace(t)
	boxes := kube.Namespaced[kube.CustomResource[BoxSpec, kube.None]](cluster.Client(t), namespace)
	api := kube.Dynamic(boxes.Client().WithFieldManager(userManager), boxes.Resource(), namespace)
	for _, spec := range []map[string]any{
		{"options": map[string]any{"a": "1"}, "tags": []any{"b"}},
		{"options": map[string]any{}, "tags": []any{}},
		{"options": map[string]any{"c": "2"}, "tags": []any{"d"}},
	} {
		box := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		box.SetGroupVersionKind(boxes.Resource().GroupVersionKind)
		box.SetNamespace(namespace)
		box.SetName("box")
		if err := applyAsUser(t.Context(), api, box); err != nil {
			t.Fatalf("%v: %v", spec, err)
		}
		got, err := boxes.Get(t.Context(), "box")
		if err != nil {
			t.Fatal(err)
		}
		if options := spec["options"].(map[string]any); len(got.Spec.Options) != len(options) || len(got.Spec.Tags) != len(options) {
			t.Errorf("after %v the box has %+v", spec, got.Spec)
		}
	}
}
