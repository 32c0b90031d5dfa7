package operator_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// defineLamps defines both versions of Lamps.
func defineLamps(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	v1, err := kube.TypeOf[lamp1]()
	if err != nil {
		t.Fatal(err)
	}
	v2, err := kube.TypeOf[lamp2]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, v1, v2)
}

// Objects are read and written in both versions while a program with a converter runs, and after its end in the test.
func TestConversion(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineLamps(t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	run := yaretest.RunParts(t, cluster, operator.Convert(toLamp2, toLamp1), idleLamp[lamp1]())
	v1, v2 := kube.Namespaced[lamp1](client, namespace), kube.Namespaced[lamp2](client, namespace)
	if _, err := v1.Create(t.Context(), &lamp1{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: lampV1{"red-dark"}}); err != nil {
		t.Fatal(err)
	}
	second, err := v2.Get(t.Context(), "one")
	if err != nil || second.Spec != (lampV2{"red", "dark"}) {
		t.Fatalf("in v2 it is %+v, %v", second, err)
	}
	if _, err := v2.Apply(t.Context(), &lamp2{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: lampV2{Hue: "blue"}}); err != nil {
		t.Fatal(err)
	}
	run.Stop()
	if _, err := v2.Modify(t.Context(), "one", func(l *lamp2) error { l.Spec.Shade = "light"; return nil }); err != nil {
		t.Fatalf("after the end of the program: %v", err)
	}
	first, err := v1.List(t.Context())
	if err != nil || len(first) != 2 || first[0].Spec.Colour != "red-light" || first[1].Spec.Colour != "blue" {
		t.Errorf("in v1 they are %+v, %v", first, err)
	}
	for _, l := range first {
		if len(l.Annotations) != 0 {
			t.Errorf("%s has the annotations %v, but nothing is lost", l.Name, l.Annotations)
		}
	}
}

// What a version cannot express comes back, also after a write in that version.
func TestConversionKeepsWhatAVersionCannotExpress(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineLamps(t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	yaretest.RunParts(t, cluster, operator.Convert(toLamp2, toLamp1))
	v1, v2 := kube.Namespaced[lamp1](client, namespace), kube.Namespaced[lamp2](client, namespace)
	// In v2 "red-" is red without a shade, which is "red" in v1.
	if _, err := v1.Create(t.Context(), &lamp1{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: lampV1{"red-"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := v2.Modify(t.Context(), "one", func(l *lamp2) error { l.Labels = map[string]string{"a": "b"}; return nil }); err != nil {
		t.Fatal(err)
	}
	l, err := v1.Get(t.Context(), "one")
	if err != nil || l.Spec.Colour != "red-" || l.Labels["a"] != "b" || len(l.Annotations) != 0 {
		t.Errorf("it came back as %+v, %v", l, err)
	}
}

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
	for _, o := range operator.IncompletePolicy(name, []schema.GroupResource{{Group: r.Group, Resource: r.Plural}}) {
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
