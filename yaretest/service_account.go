package yaretest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// ServiceAccount is an account with no rights but those that [ServiceAccount.Allow] gives it, like
// the account of an operator in a cluster.
type ServiceAccount struct {
	cluster    *Cluster
	namespace  string
	name       string
	kubeconfig string
}

// writeKubeconfig writes a kubeconfig file that is removed after t, and returns its path.
func writeKubeconfig(t testing.TB, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Allow gives the account rights in one namespace, or everywhere if namespace is empty, and
// waits until the API server grants them.
func (a *ServiceAccount) Allow(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client := a.cluster.Client(t)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: a.name}}
	meta := metav1.ObjectMeta{GenerateName: a.name + "-", Namespace: namespace}
	if namespace == "" {
		role, err := kube.Everywhere[rbacv1.ClusterRole](client).Create(t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		a.cluster.removeAfter(t, client, role)
		binding, err := kube.Everywhere[rbacv1.ClusterRoleBinding](client).Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		})
		if err != nil {
			t.Fatal(err)
		}
		a.cluster.removeAfter(t, client, binding)
		a.waitUntilGranted(t, client, namespace, rules)
		return
	}
	role, err := kube.Namespaced[rbacv1.Role](client, namespace).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: meta, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.Namespaced[rbacv1.RoleBinding](client, namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}); err != nil {
		t.Fatal(err)
	}
	a.waitUntilGranted(t, client, namespace, rules)
}

// AllowPrinted gives the account the rights that the program at path needs: those that its command permissions prints
// with these arguments, such as --watch-namespace. It returns their rules. The namespace of the account is that of the
// program.
func (a *ServiceAccount) AllowPrinted(t testing.TB, path string, args ...string) []rbacv1.PolicyRule {
	t.Helper()
	printed := printedRules(t, path, append([]string{"--namespace", a.namespace}, args...)...)
	printed.allow(t, a)
	return printed.all()
}

// waitUntilGranted waits until the API server has observed new rights, which takes a moment. It
// observes all rules of a role at once, so it is enough to ask for the first right.
func (a *ServiceAccount) waitUntilGranted(
	t testing.TB, client *kube.Client, namespace string, rules []rbacv1.PolicyRule,
) {
	t.Helper()
	first := func(values []string) string {
		if len(values) == 0 {
			return ""
		}
		return values[0]
	}
	if len(rules) == 0 || len(rules[0].Resources) == 0 {
		return // rights on URLs
	}
	resource, subresource, _ := strings.Cut(first(rules[0].Resources), "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + a.namespace + ":" + a.name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: first(rules[0].Verbs), Group: first(rules[0].APIGroups),
			Resource: resource, Subresource: subresource, Name: first(rules[0].ResourceNames),
		},
	}}
	Eventually(t, func() error {
		answer, err := kube.Everywhere[authorizationv1.SubjectAccessReview](client).Create(t.Context(), review)
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("the account %s has not got its rights: %s", a.name, answer.Status.Reason)
		}
		return err
	})
}

// String returns the namespace and the name of the account, as NAMESPACE/NAME.
func (a *ServiceAccount) String() string { return a.namespace + "/" + a.name }

// Kubeconfig returns the path of a kubeconfig file with the account's rights.
func (a *ServiceAccount) Kubeconfig() string { return a.kubeconfig }

// Config returns a client configuration with the account's rights.
func (a *ServiceAccount) Config(t testing.TB) *kube.Config {
	t.Helper()
	config, _, err := kube.ConfigSource{Kubeconfig: a.kubeconfig}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Client returns a new client with the account's rights. Its connections are closed after t.
func (a *ServiceAccount) Client(t testing.TB) *kube.Client {
	t.Helper()
	return clientOf(t, a.Config(t))
}

func (a *ServiceAccount) targetCluster() *Cluster { return a.cluster }

// Proxy starts a proxy of the API server with the account's rights. It ends after t.
func (a *ServiceAccount) Proxy(t testing.TB) *Proxy {
	t.Helper()
	return newProxy(t, a.cluster, a.Config(t), a.namespace)
}
