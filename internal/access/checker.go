package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// CheckVariable is the environment variable that makes a program refuse the requests that no part declares. Any
// value but the empty one has this effect.
const CheckVariable = "YARE_CHECK_PERMISSIONS"

type contextKey struct{}

// WithCheck returns a context for a program in a namespace. The program refuses the requests that no part declares.
func WithCheck(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, contextKey{}, namespace)
}

// CheckedNamespace returns the namespace that [WithCheck] has put into ctx. It reports false if ctx does not come from
// WithCheck.
func CheckedNamespace(ctx context.Context) (namespace string, isChecked bool) {
	namespace, isChecked = ctx.Value(contextKey{}).(string)
	return namespace, isChecked
}

// Checker decides which requests of a program its grants allow.
//
// For example, a program in the namespace ops watches the namespace shop, and declares to get webapps and, in its
// own namespace, to update leases. Its grants have a rule for webapps in shop and a rule for leases in ops. So
// it may get a webapp in shop. The verb get is missing for a webapp in ops, and update for a lease in shop.
type Checker struct {
	grants Grants
	// watched are the namespaces that the program watches. It is empty for all namespaces.
	watched []string
	// own is the namespace of the program. It is empty if it is not known.
	own string
}

// NewChecker returns a checker of a program that watches these namespaces, or all namespaces if there
// are none, and is installed in the namespace own.
func NewChecker(needs kube.Needs, watched []string, own string) *Checker {
	return &Checker{watched: watched, own: own, grants: For(needs, watched)}
}

// MissingVerbs returns the verbs that the server demands for r and the grants lack. There are none for
// requests that every authenticated user may make by default. There are none for requests to other clusters,
// because their permissions are not declared.
//
// The API server demands create as well as patch for an apply that may create its object.
func (c *Checker) MissingVerbs(r *wire.Request) []wire.Verb {
	if r.Cluster != "" || isPublic(r) {
		return nil
	}
	verbs := []wire.Verb{r.Verb}
	if mayCreateByApply(r) {
		verbs = []wire.Verb{wire.VerbCreate, wire.VerbPatch}
	}
	return slices.DeleteFunc(verbs, func(verb wire.Verb) bool { return c.allows(verb, r) })
}

// mayCreateByApply reports whether r is an apply that creates a missing object. An apply with a uid never
// creates.
func mayCreateByApply(r *wire.Request) bool {
	return r.Verb == wire.VerbPatch && r.ContentType == wire.ContentApply && r.Subresource == "" &&
		r.Preconditions.UID == ""
}

// isPublic reports whether the ClusterRoles system:discovery and system:basic-user allow r
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#discovery-roles).
func isPublic(r *wire.Request) bool {
	if r.Resource.Plural == "" {
		return true // discovery
	}
	if r.Verb != wire.VerbCreate {
		return false
	}
	switch r.Resource.Group {
	case "authorization.k8s.io":
		return r.Resource.Plural == "selfsubjectaccessreviews" || r.Resource.Plural == "selfsubjectrulesreviews"
	case "authentication.k8s.io":
		return r.Resource.Plural == "selfsubjectreviews"
	}
	return false
}

// allows reports whether the grants allow a verb on what r is about.
func (c *Checker) allows(verb wire.Verb, r *wire.Request) bool {
	isAllowed := func(rule kube.PolicyRule) bool { return ruleAllows(rule, verb, r) }
	if slices.ContainsFunc(c.grants.Cluster, isAllowed) {
		return true
	}
	if r.Namespace == "" {
		return false
	}
	return slices.ContainsFunc(c.grants.Namespaced[r.Namespace], isAllowed) ||
		r.Namespace == c.own && slices.ContainsFunc(c.grants.Own, isAllowed)
}

// ruleAllows reports whether rule allows a verb on what r is about, as the authorizer RBAC decides.
func ruleAllows(rule kube.PolicyRule, verb wire.Verb, r *wire.Request) bool {
	return matches(rule.Verbs, string(verb)) &&
		matches(rule.APIGroups, r.Resource.Group) &&
		matchesResource(rule.Resources, r) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, objectName(r)))
}

// matches reports whether values has value or a wildcard.
func matches(values []string, value string) bool {
	return slices.Contains(values, value) || slices.Contains(values, "*")
}

func matchesResource(resources []string, r *wire.Request) bool {
	return matches(resources, resourceName(r.Resource.Plural, r.Subresource)) ||
		r.Subresource != "" && slices.Contains(resources, "*/"+r.Subresource)
}

// objectName returns the name of the object of r, as the API server sees the name before it reads the body. It
// is the name in the URL, or the name in the field selector of a list or a watch.
func objectName(r *wire.Request) string {
	if r.Name != "" || r.Verb != wire.VerbList && r.Verb != wire.VerbWatch {
		return r.Name
	}
	selector, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// Declaration returns the Go expression that declares verbs on what r is about, such as
// controller.Writes[corev1.ConfigMap](wire.VerbDelete). The name of a type is the name that programs
// commonly use.
func (c *Checker) Declaration(r *wire.Request, verbs []wire.Verb) string {
	verbs = slices.Clone(verbs)
	SortVerbs(verbs)
	if !r.Resource.ClusterScoped && r.Namespace == "" && len(c.watched) > 0 {
		return rawDeclaration(r, verbs)
	}
	function := "Writes"
	var names []string
	for _, verb := range verbs {
		names = append(names, verbName(verb))
	}
	if !slices.ContainsFunc(verbs, wire.Verb.IsWrite) {
		function = "Reads"
		// Who watches also lists, and gets what has changed meanwhile.
		if slices.Contains(verbs, wire.VerbWatch) {
			names = nil
		}
	}
	text := fmt.Sprintf("controller.%s[%s](%s)", function, typeName(r.Resource), strings.Join(names, ", "))
	if r.Subresource != "" {
		text += fmt.Sprintf(".Subresource(%q)", r.Subresource)
	}
	switch {
	case r.Namespace == "" || len(c.watched) == 0 || slices.Contains(c.watched, r.Namespace):
		return text
	case r.Namespace == c.own:
		return text + ".InOwnNamespace()"
	default:
		return text + fmt.Sprintf(".InNamespaces(%q)", r.Namespace)
	}
}

// rawDeclaration returns the declaration of verbs on the objects of all namespaces for a program that watches
// some namespaces. Only a rule can declare them.
func rawDeclaration(r *wire.Request, verbs []wire.Verb) string {
	quoted := make([]string, len(verbs))
	for i, verb := range verbs {
		quoted[i] = fmt.Sprintf("%q", verb)
	}
	return fmt.Sprintf(
		"controller.Allow(kube.PolicyRule{APIGroups: []string{%q}, Resources: []string{%q}, Verbs: []string{%s}})",
		r.Resource.Group, resourceName(r.Resource.Plural, r.Subresource), strings.Join(quoted, ", "))
}

// verbName returns the constant of package wire for a verb.
func verbName(verb wire.Verb) string {
	switch verb {
	case wire.VerbGet, wire.VerbList, wire.VerbWatch, wire.VerbCreate, wire.VerbUpdate, wire.VerbPatch, wire.VerbDelete:
		return "wire.Verb" + strings.ToUpper(string(verb[:1])) + string(verb[1:])
	case wire.VerbDeleteCollection:
		return "wire.VerbDeleteCollection"
	}
	return fmt.Sprintf("%q", verb)
}

// typeName returns the Go type of a resource: of k8s.io/api with the usual name of its package, else
// the kind alone.
func typeName(r wire.Resource) string {
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
		"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
		"internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io":
		return true
	}
	return false
}
