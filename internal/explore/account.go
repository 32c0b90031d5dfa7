package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
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
	for _, s := range b.Subjects {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.Name == a.Name && (s.Namespace == a.Namespace || s.Namespace == "") {
				return true
			}
		case rbacv1.GroupKind:
			if s.Name == a.group() {
				return true
			}
		}
	}
	return false
}

// checkAccount returns an error if the operator has an account that does not exist.
func (e *explorer) checkAccount(ctx context.Context) error {
	a := e.operator.account()
	if a == nil {
		return nil
	}
	_, err := kube.Namespaced[corev1.ServiceAccount](e.client, a.Namespace).Get(ctx, a.Name)
	if kube.IsNotFound(err) {
		return fmt.Errorf("the account %s does not exist: install it with its roles", a)
	}
	return err
}

// target returns the configuration by which the proxy reaches the server for the program.
func (e *explorer) target() *kube.Config {
	if a := e.operator.account(); a != nil {
		return a.config(e.options.Config)
	}
	return e.options.Config
}

// grant gives the account of the operator, in the namespace of a run, the permissions that the account has in
// its own namespace, and waits until the server has observed them.
func (e *explorer) grant(ctx context.Context, namespace string) error {
	a := e.operator.account()
	if a == nil {
		return nil
	}
	bindings, err := kube.Namespaced[rbacv1.RoleBinding](e.client, a.Namespace).List(ctx)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if !a.isBoundBy(b) {
			continue
		}
		if err := e.copyBinding(ctx, a, b, namespace); err != nil {
			return fmt.Errorf("give the account %s in the namespace %s what the RoleBinding %s gives: %w", a, namespace, b.Name, err)
		}
	}
	return nil
}

// copyBinding copies a binding, and its Role, to another namespace. The account is the only subject.
func (e *explorer) copyBinding(ctx context.Context, a *Account, b *rbacv1.RoleBinding, namespace string) error {
	client := e.client.WithFieldManager(userManager)
	rules, err := e.rulesOf(ctx, b)
	if err != nil {
		return err
	}
	if b.RoleRef.Kind == "Role" {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: b.RoleRef.Name, Namespace: namespace}, Rules: rules}
		if _, err := kube.Namespaced[rbacv1.Role](client, namespace).Create(ctx, role); err != nil && !kube.IsAlreadyExists(err) {
			return err
		}
	}
	_, err = kube.Namespaced[rbacv1.RoleBinding](client, namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.Name, Namespace: namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}},
		RoleRef:    b.RoleRef,
	})
	if err != nil {
		return err
	}
	return e.waitGranted(ctx, a, namespace, rules)
}

// rulesOf returns the rules of the role that a binding binds.
func (e *explorer) rulesOf(ctx context.Context, b *rbacv1.RoleBinding) ([]rbacv1.PolicyRule, error) {
	if b.RoleRef.Kind == "Role" {
		role, err := kube.Namespaced[rbacv1.Role](e.client, b.Namespace).Get(ctx, b.RoleRef.Name)
		if err != nil {
			return nil, err
		}
		return role.Rules, nil
	}
	role, err := kube.All[rbacv1.ClusterRole](e.client).Get(ctx, b.RoleRef.Name)
	if err != nil {
		return nil, err
	}
	return role.Rules, nil
}

// maxGrantedWait is how long an API server may take to observe a new binding.
const maxGrantedWait = 30 * time.Second

// waitGranted waits until the API server has observed a new binding. The server observes all rules of a role
// at once, so it is enough to ask for the first right.
func (e *explorer) waitGranted(ctx context.Context, a *Account, namespace string, rules []rbacv1.PolicyRule) error {
	if len(rules) == 0 || len(rules[0].Verbs) == 0 || len(rules[0].Resources) == 0 || len(rules[0].APIGroups) == 0 {
		return nil
	}
	resource, subresource, _ := strings.Cut(rules[0].Resources[0], "/")
	user := a.config(e.options.Config).Impersonate
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.UserName, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: resource, Subresource: subresource,
		},
	}}
	if names := rules[0].ResourceNames; len(names) > 0 {
		review.Spec.ResourceAttributes.Name = names[0]
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxGrantedWait, errors.New("the API server does not observe the new binding"))
	defer cancel()
	for {
		answer, err := kube.All[authorizationv1.SubjectAccessReview](e.client).Create(ctx, review)
		if err != nil {
			return err
		}
		if answer.Status.Allowed {
			return nil
		}
		if err := clock.SleepReal(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
