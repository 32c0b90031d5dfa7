package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
