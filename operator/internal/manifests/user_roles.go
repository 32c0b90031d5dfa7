package manifests

import (
	"slices"

	"github.com/yare-go/yare/crd"
)

// userRoleLevels returns the levels of the roles for the users of a kind. Kubernetes adds the rules of a level to its
// own ClusterRole of that name: see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles.
func userRoleLevels() []string { return []string{"view", "edit", "admin"} }

// UserRoleNames returns the names of the ClusterRoles for the users of the kind of a definition, such as
// webapps.example.com-view.
func UserRoleNames(definition string) (names []string) {
	for _, level := range userRoleLevels() {
		names = append(names, definition+"-"+level)
	}
	return names
}

// isUserRole reports whether object is a role for the users of a definition among objects.
func isUserRole(object Object, objects []Object) bool {
	return Kind(object) == "ClusterRole" && slices.ContainsFunc(objects, func(definition Object) bool {
		return Kind(definition) == "CustomResourceDefinition" &&
			slices.Contains(UserRoleNames(Name(definition)), Name(object))
	})
}

// userRoles returns the roles for the users of a kind. With view they read objects, with edit they also write them, and
// with admin they also write the status, which the program writes otherwise.
func userRoles(definition *crd.CustomResourceDefinition) (roles []Object) {
	plural := definition.Spec.Names.Plural
	main, status, scale := []string{plural}, []string{}, []string{}
	for _, v := range definition.Spec.Versions {
		if v.Subresources != nil && v.Subresources.Status != nil {
			status = []string{plural + "/status"}
		}
		if v.Subresources != nil && v.Subresources.Scale != nil {
			scale = []string{plural + "/scale"}
		}
	}
	reads := []string{"get", "list", "watch"}
	updates := []string{"update", "patch"}
	rule := func(verbs []string, resources ...[]string) Object {
		return Object{"apiGroups": []string{definition.Spec.Group}, "resources": slices.Concat(resources...), "verbs": verbs}
	}
	view := []Object{rule(reads, main, status, scale)}
	edit := append(slices.Clone(view),
		rule(slices.Concat([]string{"create"}, updates, []string{"delete", "deletecollection"}), main))
	if len(scale) > 0 {
		edit = append(edit, rule(updates, scale))
	}
	admin := slices.Clone(edit)
	if len(status) > 0 {
		admin = append(admin, rule(updates, status))
	}
	for i, rules := range [][]Object{view, edit, admin} {
		roles = append(roles, Object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": Object{
				"name":   UserRoleNames(definition.Metadata.Name)[i],
				"labels": Object{"rbac.authorization.k8s.io/aggregate-to-" + userRoleLevels()[i]: "true"},
			},
			"rules": rules,
		})
	}
	return roles
}
