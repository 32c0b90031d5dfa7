// Package policy applies the admission policies of a program to a cluster, and reports the mistakes that the cluster's
// type check finds in their expressions.
//
// The cluster checks the types of a ValidatingAdmissionPolicy once for each generation, and writes the result into the
// status. An expression with a mistake stays in force: it fails at each request. The check knows the kind of a
// CustomResourceDefinition only when the OpenAPI document of the kind is published. This is up to a second after the
// definition is established, and after it was changed. A check that comes earlier has an empty result, as if everything
// were right (measured on Kubernetes 1.36.3 and 1.37.2).
//
// So [Apply] has a copy of each policy checked, before it applies the policy itself. The copy has no binding, and an
// expression with a mistake on purpose, the control. A result without a warning about the control is no result, and the
// copy is checked anew. A result counts when a check one second later has the same result.
//
// For example, a policy has the expression object.spec.siz > 1, and the definition has the field size:
//
//	attempt  warnings                 what follows
//	1        none                     the kind is not published yet: the copy is checked anew
//	2        the expression, control  the copy is checked anew after a second
//	3        the expression, control  an error about the expression
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const group = "admissionregistration.k8s.io"

// The kinds of admission policies.
const (
	validatingKind        = "ValidatingAdmissionPolicy"
	validatingBindingKind = "ValidatingAdmissionPolicyBinding"
	mutatingKind          = "MutatingAdmissionPolicy"
	mutatingBindingKind   = "MutatingAdmissionPolicyBinding"
)

// kindsInOrder returns the kinds in the order in which objects are applied.
func kindsInOrder() []string {
	return []string{validatingKind, mutatingKind, validatingBindingKind, mutatingBindingKind}
}

// pluralOf returns the plural of a kind.
func pluralOf(kind string) string {
	switch kind {
	case validatingKind:
		return "validatingadmissionpolicies"
	case mutatingKind:
		return "mutatingadmissionpolicies"
	case validatingBindingKind:
		return "validatingadmissionpolicybindings"
	default:
		return "mutatingadmissionpolicybindings"
	}
}

// Select returns the admission policies and their bindings among objects, policies first.
func Select(objects []unstructured.Unstructured) (selected []unstructured.Unstructured) {
	for _, kind := range kindsInOrder() {
		for _, object := range objects {
			if gvk := object.GroupVersionKind(); gvk.Group == group && gvk.Kind == kind {
				selected = append(selected, object)
			}
		}
	}
	return selected
}

// OfParts returns the admission policies that parts bring for an installation in a namespace, policies first. P is
// operator.Part.
func OfParts[P any](parts []P, namespace string) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, part := range feature.PartsWithin(parts) {
		if bringer, ok := any(part).(feature.PolicyBringer); ok {
			for _, object := range bringer.Policies(namespace, nil) {
				all = append(all, unstructured.Unstructured{Object: object})
			}
		}
	}
	return Select(all)
}

// Names returns the kind and the name of each policy.
func Names(policies []unstructured.Unstructured) (names []string) {
	for _, p := range policies {
		names = append(names, describe(&p))
	}
	return names
}

// describe returns the kind and the name of an object.
func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// apiOf returns the API of the kind of a policy or a binding.
func apiOf(client *kube.Client, object *unstructured.Unstructured) kube.API[unstructured.Unstructured] {
	gvk := object.GroupVersionKind()
	return kube.Dynamic(client, wire.Resource{GroupVersionKind: gvk, Plural: pluralOf(gvk.Kind), ClusterScoped: true}, "")
}

// Apply checks the policies that [Select] has returned, applies them, and returns when the API server enforces them. If
// the check finds a mistake, Apply applies nothing, and the error names the policy and the expression. The definitions
// of the kinds that the policies are about must be established.
//
// A server may have no mutating policies. Apply leaves out each policy that the server does not serve, and calls report
// with a text about the policy.
func Apply(ctx context.Context, client *kube.Client, policies []unstructured.Unstructured, report func(string)) error {
	client = client.WithFieldManager("yare")
	if err := checkTypes(ctx, client, policies); err != nil {
		return err
	}
	var applied []unstructured.Unstructured
	for _, p := range policies {
		_, err := apiOf(client, &p).Apply(ctx, p.DeepCopy(), kube.Strict())
		switch {
		case kube.IsNoResource(err):
			report(describe(&p) + " is left out: the server does not serve " + p.GetAPIVersion())
		case err != nil:
			return fmt.Errorf("apply the %s: %w", describe(&p), err)
		default:
			applied = append(applied, p)
		}
	}
	return waitUntilEnforced(ctx, client, applied)
}

// Remove deletes policies and bindings, the bindings first.
func Remove(ctx context.Context, client *kube.Client, policies []unstructured.Unstructured) error {
	var errs []error
	for _, p := range slices.Backward(policies) {
		if err := kube.IgnoreNotFound(apiOf(client, &p).Delete(ctx, p.GetName())); err != nil && !kube.IsNoResource(err) {
			errs = append(errs, fmt.Errorf("delete the %s: %w", describe(&p), err))
		}
	}
	return errors.Join(errs...)
}

// Narrow returns policies under other names, which end with suffix, so that no other policies have these names. If
// there are values, the policies concern only objects in namespaces whose label key has one of the values, and objects
// outside of namespaces.
func Narrow(
	policies []unstructured.Unstructured, suffix, key string, values []string,
) ([]unstructured.Unstructured, error) {
	renamed := make(map[string]bool)
	for _, p := range policies {
		renamed[p.GetName()] = true
	}
	var narrowed []unstructured.Unstructured
	for _, p := range policies {
		p := *p.DeepCopy()
		p.SetName(p.GetName() + "-" + suffix)
		if p.GetKind() == validatingBindingKind || p.GetKind() == mutatingBindingKind {
			if name, _, _ := unstructured.NestedString(p.Object, "spec", "policyName"); renamed[name] {
				if err := unstructured.SetNestedField(p.Object, name+"-"+suffix, "spec", "policyName"); err != nil {
					return nil, err
				}
			}
			if err := selectNamespaces(&p, key, values); err != nil {
				return nil, fmt.Errorf("narrow the %s: %w", describe(&p), err)
			}
		}
		narrowed = append(narrowed, p)
	}
	return narrowed, nil
}

// selectNamespaces adds a condition to the namespace selector of a binding.
func selectNamespaces(binding *unstructured.Unstructured, key string, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	path := []string{"spec", "matchResources", "namespaceSelector", "matchExpressions"}
	expressions, _, err := unstructured.NestedSlice(binding.Object, path...)
	if err != nil {
		return err
	}
	values := make([]any, len(labels))
	for i, each := range labels {
		values[i] = each
	}
	expressions = append(expressions,
		map[string]any{"key": key, "operator": string(metav1.LabelSelectorOpIn), "values": values})
	return unstructured.SetNestedSlice(binding.Object, expressions, path...)
}

// checkTypes checks the types of all validating policies, side by side.
func checkTypes(ctx context.Context, client *kube.Client, policies []unstructured.Unstructured) error {
	errs := make([]error, len(policies))
	var checking sync.WaitGroup
	for i, p := range policies {
		if p.GetKind() == validatingKind {
			checking.Go(func() { errs[i] = (&typeCheck{client: client, policy: &p}).run(ctx) })
		}
	}
	checking.Wait()
	return errors.Join(errs...)
}

// customResources returns the served versions of resources whose version may be "*". It leaves out resources that no
// CustomResourceDefinition serves.
func customResources(
	ctx context.Context, client *kube.Client, named []schema.GroupVersionResource,
) (served []wire.Resource, err error) {
	definitions := kube.Dynamic(client, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		},
		Plural: "customresourcedefinitions", ClusterScoped: true,
	}, "")
	for _, r := range named {
		definition, err := definitions.Get(ctx, r.Resource+"."+r.Group)
		if kube.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, each := range versions {
			version, _ := each.(map[string]any)
			name, _ := version["name"].(string)
			if version["served"] == true && (r.Version == "*" || r.Version == name) {
				gvk := schema.GroupVersionKind{Group: r.Group, Version: name, Kind: kind}
				served = append(served, wire.Resource{GroupVersionKind: gvk, Plural: r.Resource, ClusterScoped: scope == "Cluster"})
			}
		}
	}
	return served, nil
}
