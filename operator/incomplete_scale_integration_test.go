package operator_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

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
	scaled := typeOf[kube.CustomResource[scaledSpec, scaledStatus]](t)
	cluster.Define(t, scaled)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	lamps := kube.Dynamic(client, scaled.Resource, namespace)
	for _, name := range []string{"whole", "marked"} {
		o := newObject(name, map[string]any{"replicas": int64(1)})
		o.SetAnnotations(map[string]string{"own": "x"})
		if name == "marked" {
			o.SetAnnotations(map[string]string{"versions.yare.dev/incomplete": "{}"})
		}
		if _, err := lamps.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range operator.IncompleteScalePolicy("incomplete-scale."+namespace, scaled.Resource) {
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
	if o, err := lamps.Get(t.Context(), "whole"); err != nil || specOf(o) != "map[replicas:3]" {
		t.Errorf("it is %v, %v", o, err)
	}
	// Once the object is mended, its scale can be written.
	if _, err := lamps.Patch(t.Context(), "marked", kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": nil}})); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error { _, err := lamps.SetScale(t.Context(), "marked", 4); return err })
}
