package operator_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
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
