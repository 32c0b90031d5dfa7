package operatortest

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/yaretest"
)

// permission is one verb on one resource. The resource has its group and its subresource, such as
// webapps.example.com/status.
type permission struct{ verb, resource string }

// permissionsOf returns the permissions that rules grant.
func permissionsOf(rules []rbacv1.PolicyRule) map[permission]bool {
	all := make(map[permission]bool)
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, subresource, isSub := strings.Cut(resource, "/")
				if group != "" {
					name += "." + group
				}
				if isSub {
					name += "/" + subresource
				}
				for _, verb := range rule.Verbs {
					all[permission{verb, name}] = true
				}
			}
		}
	}
	return all
}

// checkUsed fails t if a write that rules allow was never made: the rules are what users grant.
func checkUsed(t *testing.T, rules []rbacv1.PolicyRule, made []yaretest.Request) {
	t.Helper()
	for p := range permissionsOf(rules) {
		name, subresource, _ := strings.Cut(p.resource, "/")
		// Get and list are needed when no watch shows the object. An apply needs create as well as patch
		// when the object does not exist yet. An owner reference may need the update of finalizers.
		if p.verb == "get" || p.verb == "list" || p.verb == "create" || subresource == "finalizers" {
			continue
		}
		if !slices.ContainsFunc(made, func(r yaretest.Request) bool {
			return string(r.Verb) == p.verb && r.Resource == name && r.Subresource == subresource
		}) {
			t.Errorf("it may %s %s, which it never did", p.verb, p.resource)
		}
	}
}
