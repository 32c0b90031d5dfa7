package conversion

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

type markedSpec struct {
	Colour string `json:"colour"`
}

func (markedSpec) Definition() kube.Definition {
	return kube.Definition{Group: "marked.example.com", Version: "v1", Kind: "Lamp"}
}

// An object from which a conversion has left something out cannot be written, but for its finalizers at its end.
func TestIncompleteObjectCannotBeWritten(t *testing.T) {
	t.Parallel()
	const mark = "versions.yare.dev/incomplete"
	type lamp = kube.CustomResource[markedSpec, kube.None]
	cluster := yaretest.Shared(t)
	yaretest.Define[lamp](t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	r := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "marked.example.com", Version: "v1", Kind: "Lamp"}, Plural: "lamps"}
	lamps := kube.Dynamic(client, r, namespace) // a typed read of such an object fails
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "finalizers": []any{"example.com/a"}}, "spec": map[string]any{"colour": "red"},
		}}
	}
	marked := object("marked")
	marked.SetAnnotations(map[string]string{mark: "{}"})
	for _, o := range []*unstructured.Unstructured{marked, object("whole")} {
		if _, err := lamps.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	name := "incomplete." + namespace
	for _, o := range incompletePolicy(name, []schema.GroupResource{{Group: r.Group, Resource: r.Plural}}) {
		policy := &unstructured.Unstructured{Object: o}
		if _, err := kube.Apply(t.Context(), client.WithFieldManager("test"), policy); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Delete(context.Background(), policy) }) // a further test would not notice it
	}
	merge := func(name string, patch any) error {
		_, err := lamps.Patch(t.Context(), name, kube.MergePatch(patch))
		return err
	}
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}
	yaretest.Eventually(t, func() error { // the server reads policies a moment later
		if err := merge("marked", label); !kube.IsInvalid(err) {
			return fmt.Errorf("a label of an incomplete object: %w", err)
		}
		return nil
	})
	spec := map[string]any{"spec": map[string]any{"colour": "blue"}}
	noFinalizers := map[string]any{"metadata": map[string]any{"finalizers": nil}}
	for step, c := range []struct {
		name  string
		patch any
		isOK  bool
	}{
		{"whole", label, true},
		{"whole", spec, true},
		{"marked", spec, false},
		{"marked", noFinalizers, false}, // it is not being deleted
		{"whole", map[string]any{"metadata": map[string]any{"annotations": map[string]any{mark: "{}"}}}, false},
	} {
		if err := merge(c.name, c.patch); (err == nil) != c.isOK || err != nil && !kube.IsInvalid(err) {
			t.Errorf("step %d, %s: %v", step, c.name, err)
		}
	}
	forged := object("forged")
	forged.SetAnnotations(map[string]string{mark: "{}"})
	if _, err := lamps.Create(t.Context(), forged); !kube.IsInvalid(err) {
		t.Errorf("a new object with the mark: %v", err)
	}
	if err := lamps.Delete(t.Context(), "marked"); err != nil {
		t.Fatal(err)
	}
	if err := merge("marked", map[string]any{"metadata": map[string]any{"finalizers": nil}, "spec": map[string]any{"colour": "blue"}}); !kube.IsInvalid(err) {
		t.Errorf("a change of the spec at the end: %v", err)
	}
	if err := merge("marked", noFinalizers); err != nil {
		t.Errorf("the removal of the finalizers at the end: %v", err)
	}
}

type scaledSpec struct {
	Replicas int32 `json:"replicas,omitempty"`
}

type scaledStatus struct {
	Replicas int32 `json:"replicas,omitempty"`
}

func (scaledSpec) Definition() kube.Definition {
	return kube.Definition{Group: "scaled.versions.example.com", Version: "v1", Kind: "Lamp", Scale: &kube.ScalePaths{}}
}

// Nobody can write the scale of an incomplete object: the policy of incomplete objects does not see such a write.
func TestScaleOfAnIncompleteObjectCannotBeWritten(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	type lamp = kube.CustomResource[scaledSpec, scaledStatus]
	scaled, err := kube.TypeOf[lamp]()
	if err != nil {
		t.Fatal(err)
	}
	yaretest.Define[lamp](t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	lamps := kube.Dynamic(client, scaled.Resource, namespace)
	for _, name := range []string{"whole", "marked"} {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": int64(1)}}}
		o.SetAnnotations(map[string]string{"own": "x"})
		if name == "marked" {
			o.SetAnnotations(map[string]string{"versions.yare.dev/incomplete": "{}"})
		}
		if _, err := lamps.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range incompleteScalePolicy("incomplete-scale."+namespace, scaled.Resource) {
		policy := &unstructured.Unstructured{Object: o}
		if _, err := kube.Apply(t.Context(), client.WithFieldManager("test"), policy); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Delete(context.Background(), policy) }) // a further test would not notice it
	}
	yaretest.Eventually(t, func() error { // the server reads policies, and the objects, a moment later
		if _, err := lamps.SetScale(t.Context(), "marked", 2); !kube.IsInvalid(err) {
			return fmt.Errorf("a write to the scale of an incomplete object: %w", err)
		}
		return nil
	})
	if _, err := lamps.SetScale(t.Context(), "whole", 3); err != nil {
		t.Errorf("the scale of another object: %v", err)
	}
	if o, err := lamps.Get(t.Context(), "whole"); err != nil || fmt.Sprint(o.Object["spec"]) != "map[replicas:3]" {
		t.Errorf("it is %v, %v", o, err)
	}
	// Once the object is mended, its scale can be written.
	if _, err := lamps.Patch(t.Context(), "marked", kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": nil}})); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error { _, err := lamps.SetScale(t.Context(), "marked", 4); return err })
}
