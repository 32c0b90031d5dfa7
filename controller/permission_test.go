package controller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// What an author declares is what the controller needs.
func TestPermissions(t *testing.T) {
	t.Parallel()
	type verbs = []wire.Verb
	maps, nodes, plants := resourceOf[corev1.ConfigMap](t), resourceOf[corev1.Node](t), resourceOf[Plant](t)
	rule := kube.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	narrowed := controller.Reads[corev1.ConfigMap](wire.VerbGet).Named("a").InNamespaces("one")
	for name, c := range map[string]struct {
		permission controller.Permission
		want       kube.Needs
	}{
		"reads":       {controller.Reads[corev1.Node](), kube.Needs{Access: []kube.Access{{Resource: nodes, Verbs: verbs{"get", "list", "watch"}}}}},
		"one verb":    {controller.Reads[corev1.Node](wire.VerbList), kube.Needs{Access: []kube.Access{{Resource: nodes, Verbs: verbs{"list"}}}}},
		"writes":      {controller.Writes[Plant](wire.VerbCreate, "bind"), kube.Needs{Access: []kube.Access{{Resource: plants, Verbs: verbs{"create", "bind"}}}}},
		"subresource": {controller.Writes[Plant](wire.VerbPatch).Subresource("status"), kube.Needs{Access: []kube.Access{{Resource: plants, Subresource: "status", Verbs: verbs{"patch"}}}}},
		"any kind":    {controller.Reads[unstructured.Unstructured](wire.VerbGet).Kind(plants), kube.Needs{Access: []kube.Access{{Resource: plants, Verbs: verbs{"get"}}}}},
		"narrowed":    {narrowed, kube.Needs{Access: []kube.Access{{Resource: maps, Verbs: verbs{"get"}, Names: []string{"a"}, Namespaces: []string{"one"}}}}},
		"narrowed again": {narrowed.Named("b").InNamespaces("two").InOwnNamespace(), kube.Needs{Access: []kube.Access{
			{Resource: maps, Verbs: verbs{"get"}, Names: []string{"a", "b"}, Namespaces: []string{"one", "two"}},
			{Resource: maps, Verbs: verbs{"get"}, Names: []string{"a", "b"}, OwnNamespace: true},
		}}},
		"rule": {controller.Allow(rule), kube.Needs{Rules: []kube.PolicyRule{rule}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone, err := c.permission.Needs()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, alone); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			all, err := controller.New(doNothing[Garden], c.permission).Needs()
			if err != nil {
				t.Fatal(err)
			}
			own := len(all.Access) - len(c.want.Access)
			if diff := cmp.Diff(c.want, kube.Needs{Access: append([]kube.Access(nil), all.Access[own:]...), Rules: all.Rules}); diff != "" {
				t.Errorf("as an option (-want +got):\n%s", diff)
			}
		})
	}
}

// The sources imply what their options say.
func TestNeedsOfSources(t *testing.T) {
	t.Parallel()
	type verbs = []wire.Verb
	read := verbs{wire.VerbGet, wire.VerbList, wire.VerbWatch}
	plants, gardens := resourceOf[Plant](t), resourceOf[Garden](t)
	finalizers := kube.Access{Resource: gardens, Subresource: "finalizers", Verbs: verbs{wire.VerbUpdate}}
	for name, c := range map[string]struct {
		option controller.Option
		want   []kube.Access
	}{
		"watched":          {watches(gardenOf), []kube.Access{{Resource: plants, Verbs: read}}},
		"owned":            {controller.Owns[Plant](), []kube.Access{{Resource: plants, Verbs: append(read[:3:3], wire.VerbCreate, wire.VerbPatch)}, finalizers}},
		"only created":     {controller.Owns[Plant](controller.WriteVerbs(wire.VerbCreate)), []kube.Access{{Resource: plants, Verbs: append(read[:3:3], wire.VerbCreate)}, finalizers}},
		"only observed":    {controller.Owns[Plant](controller.WriteVerbs()), []kube.Access{{Resource: plants, Verbs: read}}},
		"owned by a label": {controller.OwnsByLabel[Plant]("example.com/uid"), []kube.Access{{Resource: plants, Verbs: append(read[:3:3], wire.VerbCreate, wire.VerbPatch, wire.VerbDelete)}}},
		"in namespaces": {watches(gardenOf, controller.InNamespaces("one"), controller.InOwnNamespace()), []kube.Access{
			{Resource: plants, Verbs: read, Namespaces: []string{"one"}}, {Resource: plants, Verbs: read, OwnNamespace: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs, err := controller.New(doNothing[Garden], c.option).Needs()
			if err != nil {
				t.Fatal(err)
			}
			// The first two are the permissions on gardens and their status.
			if diff := cmp.Diff(c.want, needs.Access[2:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
