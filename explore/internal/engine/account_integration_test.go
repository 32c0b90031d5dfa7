package engine_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// The requests of a program with an account may do in the namespace of the run what the account may do in its
// own namespace, and nothing else: the server refuses the rest.
func TestProgramHasThePermissionsOfItsAccount(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	home, namespace, other := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	admin := cluster.Client(t)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "operator", Namespace: home}}
	create(t, kube.Namespaced[corev1.ServiceAccount](admin, home), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}})
	create(t, kube.Namespaced[rbacv1.Role](admin, home), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
	})
	create(t, kube.Namespaced[rbacv1.RoleBinding](admin, home), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
	})
	account, err := engine.ParseAccount(home + "/operator")
	if err != nil {
		t.Fatal(err)
	}
	config, err := engine.GrantAccount(t.Context(), cluster.Config(), account, namespace)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.Namespaced[corev1.ConfigMap](client, namespace).List(t.Context()); err != nil {
		t.Errorf("the account may not list in the namespace of the run: %v", err)
	}
	if _, err := kube.Namespaced[corev1.ConfigMap](client, other).List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("the account lists in another namespace: %v", err)
	}
	if _, err := kube.Namespaced[corev1.Secret](client, namespace).List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("the account lists what it may not list: %v", err)
	}

	missing := &engine.Account{Namespace: home, Name: "missing"}
	if _, err := engine.GrantAccount(t.Context(), cluster.Config(), missing, namespace); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the error of an account that does not exist is %v", err)
	}
}

func TestParseAccount(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "operator", "/operator", "a/", "a/b/c"} {
		if account, err := engine.ParseAccount(text); err == nil {
			t.Errorf("%q is the account %s", text, account)
		}
	}
}

// create creates an object.
func create[T any](t *testing.T, api kube.API[T], object *T) {
	t.Helper()
	if _, err := api.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}
