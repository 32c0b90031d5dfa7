package engine

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/kube"
)

// Account is a ServiceAccount. The requests of a program with an account carry the permissions of the account.
// The permissions by ClusterRoleBindings hold everywhere. The permissions by RoleBindings in the namespace of the
// account hold in the namespace of each run. The API server refuses all other requests of the program.
type Account struct{ Namespace, Name string }

// ParseAccount returns the account in a text such as monitoring/prometheus-operator.
func ParseAccount(text string) (*Account, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("the account is %q: write NAMESPACE/NAME", text)
	}
	return &Account{namespace, name}, nil
}

// String returns the namespace and the name.
func (a *Account) String() string { return a.Namespace + "/" + a.Name }

// group returns the name of the group of all accounts in the namespace.
func (a *Account) group() string { return "system:serviceaccounts:" + a.Namespace }

// config returns the configuration of an administrator who impersonates the account.
func (a *Account) config(admin *kube.Config) *kube.Config {
	config := admin.Clone()
	config.Impersonate = kube.Impersonation{
		UserName: "system:serviceaccount:" + a.Namespace + ":" + a.Name,
		Groups:   []string{"system:serviceaccounts", a.group(), "system:authenticated"},
	}
	return config
}

// isBoundBy reports whether a binding in the namespace of the account gives the account permissions.
func (a *Account) isBoundBy(b *rbacv1.RoleBinding) bool {
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Name == a.Name && (s.Namespace == a.Namespace || s.Namespace == "")
		case rbacv1.GroupKind:
			return s.Name == a.group()
		}
		return false
	})
}
