package operator_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/yaretest"
)

// The older release of a program knows no watts. The CustomResourceDefinition of the newer release has them in both versions.
type (
	oldTorchSpec1 struct {
		Colour string `json:"colour,omitempty"`
	}
	oldTorchSpec2 struct {
		Hue string `json:"hue,omitempty"`
	}
	newTorchSpec1 struct {
		Colour string `json:"colour,omitempty"`
		Note   string `json:"note,omitempty"`
		Watts  int    `json:"watts,omitempty"`
	}
	newTorchSpec2 struct {
		Hue   string `json:"hue,omitempty"`
		Watts int    `json:"watts,omitempty"`
	}
	oldTorch1 = kube.CustomResource[oldTorchSpec1, kube.None]
	oldTorch2 = kube.CustomResource[oldTorchSpec2, kube.None]
	newTorch1 = kube.CustomResource[newTorchSpec1, kube.None]
	newTorch2 = kube.CustomResource[newTorchSpec2, kube.None]
)

const torchGroup = "torches.versions.example.com"

func (oldTorchSpec1) Definition() kube.Definition { return lampDefinition(torchGroup, "v1", true) }
func (oldTorchSpec2) Definition() kube.Definition { return lampDefinition(torchGroup, "v2", false) }
func (newTorchSpec1) Definition() kube.Definition { return lampDefinition(torchGroup, "v1", true) }
func (newTorchSpec2) Definition() kube.Definition { return lampDefinition(torchGroup, "v2", false) }

// The older release destroys no field that only the newer one knows, and no edit of such a field, whoever converts. An edit in
// v2 was kept in an annotation, and v1 had the value of before.
func TestOlderReleaseKeepsEditsOfFieldsThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[newTorch1](t), typeOf[newTorch2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	v1, v2 := kube.Dynamic(client, typeOf[newTorch1](t).Resource, namespace), kube.Dynamic(client, typeOf[newTorch2](t).Resource, namespace)
	older := func() {
		yaretest.RunParts(t, cluster, conversion.Between(func(a *oldTorch1, b *oldTorch2) { b.Spec.Hue = a.Spec.Colour }, func(b *oldTorch2, a *oldTorch1) { a.Spec.Colour = b.Spec.Hue })).Stop()
	}
	newer := func() {
		yaretest.RunParts(t, cluster, conversion.Between(func(a *newTorch1, b *newTorch2) { b.Spec = newTorchSpec2{a.Spec.Colour, a.Spec.Watts} },
			func(b *newTorch2, a *newTorch1) { a.Spec = newTorchSpec1{Colour: b.Spec.Hue, Watts: b.Spec.Watts} })).Stop()
	}
	want := func(step string, colour string, watts int) {
		t.Helper()
		first, err := v1.Get(t.Context(), "torch")
		if err != nil {
			t.Fatal(err)
		}
		second, err := v2.Get(t.Context(), "torch")
		if err != nil {
			t.Fatal(err)
		}
		if want1, want2 := fmt.Sprintf("map[colour:%s note:n watts:%d]", colour, watts), fmt.Sprintf("map[hue:%s watts:%d]", colour, watts); specOf(first) != want1 || specOf(second) != want2 || len(first.GetAnnotations()) != 0 {
			t.Errorf("%s: it is %v %v in v1 and %v in v2", step, specOf(first), first.GetAnnotations(), specOf(second))
		}
	}
	edit := func(api kube.API[unstructured.Unstructured], field string, value any) {
		t.Helper()
		if _, err := api.Patch(t.Context(), "torch", kube.MergePatch(map[string]any{"spec": map[string]any{field: value}})); err != nil {
			t.Fatal(err)
		}
	}
	newer()
	if _, err := v1.Create(t.Context(), newObject("torch", map[string]any{"colour": "red", "note": "n", "watts": int64(40)})); err != nil {
		t.Fatal(err)
	}
	older()
	want("the older release reads", "red", 40)
	edit(v2, "hue", "blue")
	want("another field is edited in v2", "blue", 40)
	edit(v2, "watts", int64(50))
	want("the field is edited in v2", "blue", 50)
	edit(v1, "watts", int64(60))
	want("the field is edited in v1", "blue", 60)
	read, err := v2.Get(t.Context(), "torch")
	if err != nil {
		t.Fatal(err)
	}
	newer()
	read.Object["spec"].(map[string]any)["watts"] = int64(70)
	if _, err := v2.Replace(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	want("an edit of what the older release has delivered", "blue", 70)
	older()
	want("the older release again", "blue", 70)
}
