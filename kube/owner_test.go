package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestOwnedBy(t *testing.T) {
	t.Parallel()
	yes := true
	meta := metav1.ObjectMeta{Name: "o", Namespace: "ns", UID: "u"}
	want := func(apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "u", Controller: &yes, BlockOwnerDeletion: &yes}
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "x"}
	last := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "y", UID: "y"}
	loose := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"name": "o", "uid": "u"},
	}}
	for _, test := range []struct {
		name   string
		owner  Object
		before []metav1.OwnerReference
		want   []metav1.OwnerReference
	}{
		{"a custom resource, whose kind is not set", &gadget{ObjectMeta: meta}, nil, []metav1.OwnerReference{want("example.com/v1", "Gadget")}},
		{"a built-in", &appsv1.Deployment{ObjectMeta: meta}, nil, []metav1.OwnerReference{want("apps/v1", "Deployment")}},
		{"unstructured", loose, nil, []metav1.OwnerReference{want("g/v1", "K")}},
		{"metadata", &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "g/v1", Kind: "K"}, ObjectMeta: meta}, nil, []metav1.OwnerReference{want("g/v1", "K")}},
		{"others stay", &gadget{ObjectMeta: meta}, []metav1.OwnerReference{other}, []metav1.OwnerReference{other, want("example.com/v1", "Gadget")}},
		{"there already, in its place", &gadget{ObjectMeta: meta}, []metav1.OwnerReference{other, {UID: "u", Name: "stale"}, last},
			[]metav1.OwnerReference{other, want("example.com/v1", "Gadget"), last}},
		{"there twice", &gadget{ObjectMeta: meta}, []metav1.OwnerReference{{UID: "u"}, other, {UID: "u"}},
			[]metav1.OwnerReference{want("example.com/v1", "Gadget"), other}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", OwnerReferences: test.before}}
			if got := OwnedBy(test.owner, child); got != child {
				t.Error("it is not the child that is returned")
			}
			if diff := cmp.Diff(test.want, child.OwnerReferences); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A child that has got all annotations of its owner does not get the values that conversions keep for the owner.
func TestChildrenGetNoKeptValues(t *testing.T) {
	t.Parallel()
	const kept, other = "versions.yare.dev/v1.0123456789abcdef", "versions.yare.dev/v1.ffffffffffffffff"
	owner := &gadget{ObjectMeta: metav1.ObjectMeta{Name: "o", Namespace: "ns", UID: "u", Annotations: map[string]string{"a": "b", kept: "{}"}}}
	for _, test := range []struct {
		name         string
		uid          types.UID
		before, want map[string]string
	}{
		{"new", "", owner.Annotations, map[string]string{"a": "b"}},
		{"new, with a value of its own", "", map[string]string{other: "{}", kept: "{}"}, map[string]string{other: "{}"}},
		{"read", "c", map[string]string{kept: "{}"}, map[string]string{kept: "{}"}},
		{"without annotations", "", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, own := range []func(*corev1.ConfigMap){
				func(c *corev1.ConfigMap) { OwnedBy(owner, c) },
				func(c *corev1.ConfigMap) { OwnedByLabel(owner, "example.com/owner", c) },
			} {
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: test.uid, Annotations: test.before}}
				own(child)
				if diff := cmp.Diff(test.want, child.Annotations); diff != "" {
					t.Error(diff)
				}
			}
			if len(owner.Annotations) != 2 {
				t.Errorf("the owner has the annotations %v", owner.Annotations)
			}
		})
	}
}
