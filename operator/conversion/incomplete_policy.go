package conversion

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
)

const (
	// incompleteExpr is true for an object from which a conversion has left something out.
	incompleteExpr = "has(oldObject.metadata.annotations) && '" + ident.IncompleteAnnotation +
		"' in oldObject.metadata.annotations"
	// finalizerRemovalExpr is true for a change of an object that is being deleted, if nothing but finalizers and metadata
	// that users do not set can have changed.
	finalizerRemovalExpr = "has(oldObject.metadata.deletionTimestamp)" +
		" && (has(object.spec) ? has(oldObject.spec) && object.spec == oldObject.spec : !has(oldObject.spec))" +
		" && (has(object.status) ? has(oldObject.status) && object.status == oldObject.status : !has(oldObject.status))" +
		" && object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?annotations == oldObject.metadata.?annotations"
	incompleteMessage = "a conversion between versions has left something out of this object, and a write would store it so: mend it in the version that its annotation " + ident.IncompleteAnnotation + " names"
	// markSettingExpr is true for a request that sets the mark of an incomplete object.
	markSettingExpr = "has(object.metadata.annotations) && '" + ident.IncompleteAnnotation +
		"' in object.metadata.annotations" +
		" && (oldObject == null || !(" + incompleteExpr + "))"
)

// incompletePolicy returns a ValidatingAdmissionPolicy of a name with its binding. The policy refuses each write of an
// incomplete object of these kinds in the version in which the object is incomplete, because the write would store what
// was delivered. It refuses to set the mark by hand, too. The removal of finalizers from an object that is being
// deleted passes.
func incompletePolicy(name string, resources []schema.GroupResource) []manifests.Object {
	var rules []any
	for _, r := range resources {
		rules = append(rules, manifests.Object{
			"apiGroups": []any{r.Group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"},
			"resources": []any{r.Resource, r.Resource + "/status"}, "scope": "*",
		})
	}
	meta := func() manifests.Object { return manifests.Object{"name": name} }
	return []manifests.Object{
		{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta(),
			"spec": manifests.Object{
				"failurePolicy":    "Fail",
				"matchConstraints": manifests.Object{"resourceRules": rules},
				"validations": []any{
					manifests.Object{
						"expression": "oldObject == null || !(" + incompleteExpr + ") || (" + finalizerRemovalExpr + ")",
						"message":    incompleteMessage,
						"reason":     "Invalid",
					},
					manifests.Object{
						"expression": "!(" + markSettingExpr + ")",
						"message":    "the annotation " + ident.IncompleteAnnotation + " is set by conversions only: leave it out",
						"reason":     "Invalid",
					},
				},
			},
		},
		{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta(),
			"spec": manifests.Object{"policyName": name, "validationActions": []any{"Deny"}},
		},
	}
}

// incompleteScalePolicy returns a ValidatingAdmissionPolicy of a name with its binding. The policy refuses each write
// of the scale of an incomplete object of a resource. A policy sees a Scale in such a write, which has no annotations.
// Therefore the objects of the namespace are its parameters: the expression is evaluated for each of them, and looks at
// the one with the name of the Scale. The API server follows the objects for that.
func incompleteScalePolicy(name string, r wire.Resource) []manifests.Object {
	const incompleteParamExpr = "has(params.metadata.annotations) && '" + ident.IncompleteAnnotation +
		"' in params.metadata.annotations"
	meta := func() manifests.Object { return manifests.Object{"name": name} }
	return []manifests.Object{
		{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta(),
			"spec": manifests.Object{
				"failurePolicy": "Fail",
				"paramKind":     manifests.Object{"apiVersion": r.GroupVersion().String(), "kind": r.Kind},
				"matchConstraints": manifests.Object{"resourceRules": []any{manifests.Object{
					"apiGroups": []any{r.Group}, "apiVersions": []any{r.Version}, "operations": []any{"UPDATE"},
					"resources": []any{r.Plural + "/scale"}, "scope": "*",
				}}},
				"validations": []any{manifests.Object{
					"expression": "params.metadata.name != object.metadata.name || !(" + incompleteParamExpr + ")",
					"message":    incompleteMessage,
					"reason":     "Invalid",
				}},
			},
		},
		{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta(),
			"spec": manifests.Object{
				"policyName": name, "validationActions": []any{"Deny"},
				"paramRef": manifests.Object{"selector": manifests.Object{}, "parameterNotFoundAction": "Allow"},
			},
		},
	}
}
