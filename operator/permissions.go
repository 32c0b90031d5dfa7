package operator

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// role is a Role or a ClusterRole.
type role struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   roleMetadata      `json:"metadata"`
	Rules      []kube.PolicyRule `json:"rules"`
}

type roleMetadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// rolesOf returns the roles of grants: the ClusterRole, and then the Roles in the order of their namespaces.
// name is the name of the objects of the installation, and installed is its namespace. For example, webapp in team-a
// has the Role webapp in team-a. The ClusterRole and the Roles in other namespaces are called webapp.team-a: see
// [manifests.ClusterName].
func rolesOf(grants access.Grants, name, installed string) []role {
	var roles []role
	clusterName := manifests.ClusterName(name, installed)
	if len(grants.Cluster) > 0 {
		roles = append(roles, newRole("ClusterRole", clusterName, "", grants.Cluster))
	}
	rules := maps.Clone(grants.Namespaced)
	if len(grants.Own) > 0 {
		if rules == nil {
			rules = make(map[string][]kube.PolicyRule)
		}
		rules[installed] = slices.Concat(rules[installed], grants.Own)
	}
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		roleName := clusterName
		if namespace == installed {
			roleName = name
		}
		roles = append(roles, newRole("Role", roleName, namespace, rules[namespace]))
	}
	return roles
}

func newRole(kind, name, namespace string, rules []kube.PolicyRule) role {
	return role{
		APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind, Metadata: roleMetadata{name, namespace}, Rules: rules,
	}
}

// installNamespaceOf returns the namespace that a program of this name is installed in, unless its user
// chooses another.
func installNamespaceOf(name string) string { return name + "-system" }

// printPermissions prints the permissions that a program of this name with these parts needs.
func printPermissions(w io.Writer, program string, o options, needs kube.Needs, parts []Part) error {
	namespace := cmp.Or(o.install.namespace, installNamespaceOf(program))
	needs.Rules = append(slices.Clone(needs.Rules), retentionRules(parts, o.namespaces, program, namespace)...)
	roles := rolesOf(access.For(needs, o.namespaces), program, namespace)
	if len(roles) == 0 {
		_, err := fmt.Fprintf(w, "# %s needs no permissions.\n", program)
		return err
	}
	for _, r := range roles {
		text, err := yaml.Marshal(r)
		if err != nil {
			return fmt.Errorf("write the %s %s: %w", r.Kind, r.Metadata.Name, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
