package yaretest

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube/wire"
)

// permissionRules are what a program may do, by namespaces. The namespace "" stands for the whole cluster.
type permissionRules map[string][]rbacv1.PolicyRule

// outputOf returns what a command of a program prints.
func outputOf(ctx context.Context, path string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, path, args...).Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it as it is
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w", path, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// printedRules returns the rules that the program at path prints with its command permissions.
func printedRules(t testing.TB, path string, args ...string) permissionRules {
	t.Helper()
	out, err := outputOf(t.Context(), path, append([]string{"permissions"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	printed := make(permissionRules)
	for document := range strings.SplitSeq(out, "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(role.Rules) > 0 {
			printed[role.Namespace] = append(printed[role.Namespace], role.Rules...)
		}
	}
	return printed
}

// allow gives an account these rules.
func (r permissionRules) allow(t testing.TB, account *ServiceAccount) {
	t.Helper()
	for _, namespace := range slices.Sorted(maps.Keys(r)) {
		account.Allow(t, namespace, r[namespace]...)
	}
}

// all returns the rules of all namespaces.
func (r permissionRules) all() (rules []rbacv1.PolicyRule) {
	for _, namespace := range slices.Sorted(maps.Keys(r)) {
		rules = append(rules, r[namespace]...)
	}
	return rules
}

// permissions returns the permissions that the rules grant.
func (r permissionRules) permissions() map[permission]bool {
	all := make(map[permission]bool)
	for _, rule := range r.all() {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[permission{verb, group, resource}] = true
				}
			}
		}
	}
	return all
}

// everywhereWithout returns the rules for the whole cluster, without p.
func (r permissionRules) everywhereWithout(p permission) permissionRules {
	var rest []rbacv1.PolicyRule
	for _, rule := range r.all() {
		if len(rule.Resources) == 0 {
			rest = append(rest, rule)
		}
		for _, resource := range rule.Resources {
			narrow := rule
			narrow.Resources = []string{resource}
			if slices.Contains(rule.APIGroups, p.group) && resource == p.resource {
				narrow.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == p.verb })
			}
			if len(narrow.Verbs) > 0 {
				rest = append(rest, narrow)
			}
		}
	}
	return permissionRules{"": rest}
}

// isGetOfUnwritten reports whether p is the get of objects that the program does not write. No write without an answer
// makes the program get such an object. Only a store in doubt after the restoration of a backup does: see
// TestViewDoesNotUseAStoreOfThePast in package cache.
func (r permissionRules) isGetOfUnwritten(p permission) bool {
	if p.verb != string(wire.VerbGet) {
		return false
	}
	for other := range r.permissions() {
		resource, subresource, _ := strings.Cut(other.resource, "/")
		if other.group == p.group && resource == p.resource && (subresource == "" || subresource == "status") &&
			wire.Verb(other.verb).IsWrite() {
			return false
		}
	}
	return true
}

// permission is one verb on one resource, such as: patch webapps.example.com/status.
type permission struct{ verb, group, resource string }

func (p permission) String() string {
	plural, subresource, isSub := strings.Cut(p.resource, "/")
	if p.group != "" {
		plural += "." + p.group
	}
	if isSub {
		plural += "/" + subresource
	}
	return p.verb + " " + plural
}

// isWildcard reports whether p contains a wildcard.
func (p permission) isWildcard() bool { return strings.Contains(p.verb+p.group+p.resource, "*") }
