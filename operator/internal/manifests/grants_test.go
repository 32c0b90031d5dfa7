package manifests

import (
	"strings"
	"testing"
)

// Wildcards, writes of Secrets and writes in the whole cluster passed without a word.
func TestPrintGrants(t *testing.T) {
	t.Parallel()
	installed := Object{"labels": Object{LabelNamespace: "n"}}
	role := func(kind string, metadata Object, group, resource string, verbs ...any) Object {
		return Object{"kind": kind, "metadata": metadata, "rules": []any{Object{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}}}
	}
	named := role("Role", installed, "", "secrets", "patch")
	named["rules"].([]any)[0].(Object)["resourceNames"] = []any{"db"}
	for name, test := range map[string]struct {
		role Object
		want []string // lines of the notes
	}{
		"reads":                             {role("ClusterRole", installed, "apps", "deployments", "get", "list", "watch"), nil},
		"a write in the whole cluster":      {role("ClusterRole", installed, "apps", "deployments", "get", "create", "patch"), []string{"in all namespaces", "create, patch apps/deployments"}},
		"a write in a namespace":            {role("Role", installed, "apps", "deployments", "create"), nil},
		"a kind of the program":             {role("ClusterRole", installed, "example.com", "webapps/status", "patch"), nil},
		"a review":                          {role("ClusterRole", installed, "authentication.k8s.io", "tokenreviews", "create"), nil},
		"a write of Secrets":                {role("Role", installed, "", "secrets", "list", "create"), []string{"writes of Secrets", "create secrets"}},
		"a write of one Secret":             {named, nil},
		"a write of Secrets everywhere":     {role("ClusterRole", installed, "", "secrets", "create"), []string{"writes of Secrets", "create secrets", "in all namespaces", "create secrets"}},
		"a wildcard for verbs":              {role("Role", installed, "apps", "deployments", "*"), []string{"wildcards", "* apps/deployments"}},
		"a wildcard for resources":          {role("Role", installed, "apps", "*", "get"), []string{"wildcards", "get apps/*"}},
		"a wildcard for groups with writes": {role("Role", installed, "*", "*", "*"), []string{"wildcards", "* */*", "writes of Secrets", "* */*"}},
		"a role for users":                  {role("ClusterRole", Object{"labels": Object{}}, "example.com", "*", "*"), nil},
	} {
		var got []string
		PrintGrants([]Object{test.role}, []string{"example.com"}, func(text string) { got = append(got, strings.Split(text, "\n")...) })
		if len(got) != len(test.want) {
			t.Errorf("%s: the notes are %q, not %q", name, got, test.want)
			continue
		}
		for i, want := range test.want {
			group, resource, isQualified := strings.Cut(want, "/") // "create apps/deployments" stands for "create deployments.apps"
			if j := strings.LastIndex(group, " "); isQualified {
				want = group[:j+1] + resource + "." + group[j+1:]
			}
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: the note %q lacks %q", name, got[i], want)
			}
		}
	}
}
