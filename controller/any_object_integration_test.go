package controller_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// Children without a Go type are applied by the loop that applies all others, with the permissions that the sources
// declare. Their resources come from discovery. At rest no child is applied.
func TestChildrenWithoutAGoType(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Garden](t, cluster)
	yaretest.Define[Plant](t, cluster)
	namespace := cluster.Namespace(t)
	plants := resourceOf[Plant](t)
	configMaps := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"}
	loose := func(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"], content["metadata"] = apiVersion, kind, map[string]any{"namespace": namespace, "name": name}
		return &unstructured.Unstructured{Object: content}
	}
	proxy := cluster.Proxy(t)
	yaretest.RunParts(t, proxy, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		for _, child := range []kube.Object{
			loose(plants.GroupVersion().String(), plants.Kind, "loose", map[string]any{"spec": map[string]any{"height": int64(3)}}),
			loose("v1", "ConfigMap", "loose", map[string]any{"data": map[string]any{"k": "v"}}),
			&Plant{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "typed"}, Spec: PlantSpec{Height: 3}},
		} {
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, child)); err != nil {
				return controller.Done(), err
			}
		}
		old := loose("v1", "ConfigMap", "old", map[string]any{})
		if err := c.Delete(ctx, old); kube.IgnoreNotFound(err) != nil {
			return controller.Done(), err
		}
		return controller.Done(), nil
	}, controller.Owns[Plant](),
		controller.Owns[unstructured.Unstructured](controller.Kind(configMaps)),
		controller.Writes[unstructured.Unstructured](wire.VerbDelete).Kind(configMaps)))

	c := cluster.Client(t)
	old, err := kube.Create[kube.Object](t.Context(), c, loose("v1", "ConfigMap", "old", map[string]any{}))
	if err != nil || old.GetUID() == "" {
		t.Fatalf("create an object without a Go type: %v, %v", old, err)
	}
	if _, err := kube.Namespaced[Garden](c, namespace).Create(t.Context(), &Garden{ObjectMeta: metav1.ObjectMeta{Name: "eden"}}); err != nil {
		t.Fatal(err)
	}
	exists := func(m *unstructured.Unstructured) error {
		if len(m.GetOwnerReferences()) == 0 {
			return fmt.Errorf("%s has no owner", m.GetName())
		}
		return nil
	}
	looseMaps := kube.Dynamic(c, configMaps, namespace)
	first := yaretest.WaitFor(t, looseMaps, "loose", exists)
	yaretest.WaitFor(t, kube.Dynamic(c, plants, namespace), "loose", exists)
	yaretest.WaitFor(t, kube.Dynamic(c, plants, namespace), "typed", exists)
	yaretest.WaitUntilGone(t, looseMaps, "old")
	proxy.RequireIdle(t, time.Second)

	if err := c.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitFor(t, looseMaps, "loose", func(m *unstructured.Unstructured) error {
		if m.GetUID() == first.GetUID() {
			return fmt.Errorf("it was not made anew")
		}
		return nil
	})
	discoveries := map[string]int{}
	for _, r := range proxy.Requests() {
		if r.Path == "/api/v1" || r.Path == "/apis/"+plants.GroupVersion().String() {
			discoveries[r.Path]++
		}
	}
	if want := map[string]int{"/api/v1": 1, "/apis/" + plants.GroupVersion().String(): 1}; !maps.Equal(discoveries, want) {
		t.Errorf("requests of discovery: %v, want %v", discoveries, want)
	}
}
