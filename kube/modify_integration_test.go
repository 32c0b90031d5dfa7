package kube_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Several writers modify one object at once, and no modification is lost.
func TestModifyOnTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	api := kube.Namespaced[corev1.ConfigMap](c, namespace)
	created := must(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))(t)
	var writers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			_, err := api.Modify(ctx, "shared", func(m *corev1.ConfigMap) error {
				m.Data = maps.Clone(m.Data)
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, fmt.Sprintf("writer-%d", i), "was here")
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	live := must(api.Get(ctx, "shared"))(t)
	if len(live.Annotations) != 3 {
		t.Errorf("three writers have left %v", live.Annotations)
	}
	same := must(api.Modify(ctx, "shared", func(*corev1.ConfigMap) error { return nil }))(t)
	if same.ResourceVersion != live.ResourceVersion || same.UID != created.UID {
		t.Errorf("a modification that changes nothing has led to %s from %s", same.ResourceVersion, live.ResourceVersion)
	}
}

// A difference leaves alone what others have changed since, and never reaches another object of
// the same name.
func TestPatchDifferenceOnTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	api := kube.Namespaced[corev1.ConfigMap](c, namespace)
	shared := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{"a": "1", "b": "1"}}
	}
	must(api.Create(ctx, shared()))(t)
	read := func() *corev1.ConfigMap { return must(api.Get(ctx, "shared"))(t) }
	before, after := read(), read()
	must(api.Patch(ctx, "shared", kube.MergePatch(map[string]any{"data": map[string]string{"b": "2"}})))(t) // somebody else

	delete(after.Data, "a")
	live := must(api.PatchDifference(ctx, before, after))(t)
	if _, ok := live.Data["a"]; ok || live.Data["b"] != "2" {
		t.Errorf("the patch has led to %v", live.Data)
	}
	after = read()
	after.Finalizers = []string{"example.com/mine"}
	if _, err := api.PatchDifference(ctx, before, after); !kube.IsConflict(err) {
		t.Errorf("a list was replaced although the object had changed: %v", err)
	}
	before, after = read(), read()
	if err := api.Delete(ctx, "shared"); err != nil {
		t.Fatal(err)
	}
	must(api.Create(ctx, shared()))(t)
	after.Data = nil
	if _, err := api.PatchDifference(ctx, before, after); !kube.IsUIDConflict(err) {
		t.Errorf("another object of that name was patched: %v", err)
	}
}
