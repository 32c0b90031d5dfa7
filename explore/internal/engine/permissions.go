package engine

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

// permissions are the permissions of an operator.
type permissions struct {
	client *kube.Client
	admin  *kube.Config
	// account is the account of the operator. It is nil if the operator has the permissions of admin.
	account *Account
}

// check returns an error if the account does not exist.
func (p *permissions) check(ctx context.Context) error {
	if p.account == nil {
		return nil
	}
	_, err := kube.Namespaced[corev1.ServiceAccount](p.client, p.account.Namespace).Get(ctx, p.account.Name)
	if kube.IsNotFound(err) {
		return fmt.Errorf("the account %s does not exist: install it with its roles", p.account)
	}
	return err
}

// target returns the configuration by which the proxy reaches the server for the program.
func (p *permissions) target() *kube.Config {
	if p.account == nil {
		return p.admin
	}
	return p.account.config(p.admin)
}

// grant gives the account of the operator, in the namespace of a run, the permissions that the account has in
// its own namespace, and waits until the server has observed them.
func (p *permissions) grant(ctx context.Context, namespace string) error {
	a := p.account
	if a == nil {
		return nil
	}
	bindings, err := kube.Namespaced[rbacv1.RoleBinding](p.client, a.Namespace).List(ctx)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if !a.isBoundBy(b) {
			continue
		}
		if err := p.copyBinding(ctx, b, namespace); err != nil {
			return fmt.Errorf("give the account %s in the namespace %s what the RoleBinding %s gives: %w",
				a, namespace, b.Name, err)
		}
	}
	return nil
}

// copyBinding copies a binding, and its Role, to another namespace. The account is the only subject.
func (p *permissions) copyBinding(ctx context.Context, b *rbacv1.RoleBinding, namespace string) error {
	a, client := p.account, p.client.WithFieldManager(userManager)
	rules, err := p.rulesOf(ctx, b)
	if err != nil {
		return err
	}
	if b.RoleRef.Kind == "Role" {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: b.RoleRef.Name, Namespace: namespace}, Rules: rules}
		_, err := kube.Namespaced[rbacv1.Role](client, namespace).Create(ctx, role)
		if err != nil && !kube.IsAlreadyExists(err) {
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
	return p.waitGranted(ctx, namespace, rules)
}

// rulesOf returns the rules of the role that a binding binds.
func (p *permissions) rulesOf(ctx context.Context, b *rbacv1.RoleBinding) ([]rbacv1.PolicyRule, error) {
	if b.RoleRef.Kind == "Role" {
		role, err := kube.Namespaced[rbacv1.Role](p.client, b.Namespace).Get(ctx, b.RoleRef.Name)
		if err != nil {
			return nil, err
		}
		return role.Rules, nil
	}
	role, err := kube.Everywhere[rbacv1.ClusterRole](p.client).Get(ctx, b.RoleRef.Name)
	if err != nil {
		return nil, err
	}
	return role.Rules, nil
}

// maxGrantedWait is how long an API server may take to observe a new binding.
const maxGrantedWait = 30 * time.Second

// waitGranted waits until the API server has observed a new binding. The server observes all rules of a role
// at once, so it is enough to ask for the first right.
func (p *permissions) waitGranted(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) error {
	if len(rules) == 0 || len(rules[0].Verbs) == 0 || len(rules[0].Resources) == 0 || len(rules[0].APIGroups) == 0 {
		return nil
	}
	resource, subresource, _ := strings.Cut(rules[0].Resources[0], "/")
	user := p.account.config(p.admin).Impersonate
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.UserName, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: resource,
			Subresource: subresource,
		},
	}}
	if names := rules[0].ResourceNames; len(names) > 0 {
		review.Spec.ResourceAttributes.Name = names[0]
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxGrantedWait,
		errors.New("the API server does not observe the new binding"))
	defer cancel()
	for {
		answer, err := kube.Everywhere[authorizationv1.SubjectAccessReview](p.client).Create(ctx, review)
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
