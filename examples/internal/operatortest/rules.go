package operatortest

import (
	"bytes"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// rules are what an operator may do, by namespaces. The namespace "" stands for the whole cluster.
type rules map[string][]rbacv1.PolicyRule

// printedRules returns the rules that a program prints with its subcommand permissions.
func printedRules(t *testing.T, program string, args ...string) rules {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"permissions"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("permissions: %v\n%s", err, stderr.Bytes())
	}
	printed := make(rules)
	for document := range strings.SplitSeq(string(out), "---\n") {
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
func (r rules) allow(t *testing.T, account *yaretest.ServiceAccount) {
	t.Helper()
	for _, namespace := range slices.Sorted(maps.Keys(r)) {
		account.Allow(t, namespace, r[namespace]...)
	}
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

// permissions returns the permissions that the rules grant.
func (r rules) permissions() map[permission]bool {
	all := make(map[permission]bool)
	for _, granted := range r {
		for _, rule := range granted {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[permission{verb, group, resource}] = true
					}
				}
			}
		}
	}
	return all
}

// without returns the rules that do not allow p.
func (r rules) without(p permission) rules {
	rest := make(rules)
	for namespace, granted := range r {
		for _, rule := range granted {
			for _, resource := range rule.Resources {
				narrow := rule
				narrow.Resources = []string{resource}
				if slices.Contains(rule.APIGroups, p.group) && resource == p.resource {
					narrow.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == p.verb })
				}
				if len(narrow.Verbs) > 0 {
					rest[namespace] = append(rest[namespace], narrow)
				}
			}
		}
	}
	return rest
}

// checkUsed fails t if a write that the rules allow was never made: the rules are what users grant.
func (r rules) checkUsed(t *testing.T, made []yaretest.Request) {
	t.Helper()
	for p := range r.permissions() {
		plural, subresource, _ := strings.Cut(p.resource, "/")
		if p.group != "" {
			plural += "." + p.group
		}
		// Get and list are needed when no watch shows the object. An apply needs create as well as patch
		// when the object does not exist yet. An owner reference may need the update of finalizers.
		if p.verb == "get" || p.verb == "list" || p.verb == "create" || subresource == "finalizers" {
			continue
		}
		if !slices.ContainsFunc(made, func(r yaretest.Request) bool {
			return string(r.Verb) == p.verb && r.Resource == plural && r.Subresource == subresource
		}) {
			t.Errorf("it may %s, which it never did", p)
		}
	}
}

// isNeverInDoubt reports whether p is the get of objects that the program does not write. So no write can
// leave them in doubt. The program gets one only while a stream is still of the past that the
// restoration of a backup has undone: see TestViewDoesNotUseAStoreOfThePast in package cache.
func (r rules) isNeverInDoubt(p permission) bool {
	if p.verb != string(wire.VerbGet) {
		return false
	}
	for other := range r.permissions() {
		resource, subresource, _ := strings.Cut(other.resource, "/")
		if other.group == p.group && resource == p.resource && (subresource == "" || subresource == "status") && wire.Verb(other.verb).IsWrite() {
			return false
		}
	}
	return true
}
