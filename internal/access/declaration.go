package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
)

// scope is where a program works.
type scope struct {
	// watched are the namespaces that the program watches. It is empty for all namespaces.
	watched []string
	// own is the namespace of the program. It is empty if it is not known.
	own string
}

// Declaration returns the Go expression that declares verbs on what r is about, such as
// controller.Writes[corev1.ConfigMap](kube.VerbDelete). The name of a type is the name that programs
// commonly use.
func (s scope) Declaration(r *kube.Request, verbs []kube.Verb) string {
	verbs = slices.Clone(verbs)
	SortVerbs(verbs)
	if !r.Resource.ClusterScoped && r.Namespace == "" && len(s.watched) > 0 {
		return rawDeclaration(r, verbs)
	}
	function := "Writes"
	var names []string
	for _, verb := range verbs {
		names = append(names, verbName(verb))
	}
	if !slices.ContainsFunc(verbs, kube.Verb.IsWrite) {
		function = "Reads"
		// Who watches also lists, and gets what has changed meanwhile.
		if slices.Contains(verbs, kube.VerbWatch) {
			names = nil
		}
	}
	text := fmt.Sprintf("controller.%s[%s](%s)", function, typeName(r.Resource), strings.Join(names, ", "))
	if r.Subresource != "" {
		text += fmt.Sprintf(".Subresource(%q)", r.Subresource)
	}
	switch {
	case r.Namespace == "" || len(s.watched) == 0 || slices.Contains(s.watched, r.Namespace):
		return text
	case r.Namespace == s.own:
		return text + ".InOwnNamespace()"
	default:
		return text + fmt.Sprintf(".InNamespaces(%q)", r.Namespace)
	}
}

// rawDeclaration returns the declaration of verbs on the objects of all namespaces for a program that watches
// some namespaces. Only a rule can declare them.
func rawDeclaration(r *kube.Request, verbs []kube.Verb) string {
	quoted := make([]string, len(verbs))
	for i, verb := range verbs {
		quoted[i] = fmt.Sprintf("%q", verb)
	}
	return fmt.Sprintf("controller.Allow(kube.PolicyRule{APIGroups: []string{%q}, Resources: []string{%q}, Verbs: []string{%s}})",
		r.Resource.Group, resourceName(r.Resource.Plural, r.Subresource), strings.Join(quoted, ", "))
}

// verbName returns the constant of package kube for a verb.
func verbName(verb kube.Verb) string {
	switch verb {
	case kube.VerbGet, kube.VerbList, kube.VerbWatch, kube.VerbCreate, kube.VerbUpdate, kube.VerbPatch, kube.VerbDelete:
		return "kube.Verb" + strings.ToUpper(string(verb[:1])) + string(verb[1:])
	case kube.VerbDeleteCollection:
		return "kube.VerbDeleteCollection"
	}
	return fmt.Sprintf("%q", verb)
}

// typeName returns the Go type of a resource: of k8s.io/api with the usual name of its package, else
// the kind alone.
func typeName(r kube.Resource) string {
	name := r.Group
	switch {
	case r.Group == "":
		name = "core"
	case !strings.Contains(r.Group, "."):
		// The groups of custom resources have dots.
	case isBuiltinGroup(r.Group):
		name, _, _ = strings.Cut(r.Group, ".")
	default:
		return r.Kind
	}
	return name + r.Version + "." + r.Kind
}

// isBuiltinGroup reports whether the types of a group with dots are in k8s.io/api.
func isBuiltinGroup(group string) bool {
	switch group {
	case "admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io",
		"node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io":
		return true
	}
	return false
}
