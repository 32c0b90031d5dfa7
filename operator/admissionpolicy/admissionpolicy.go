// Package admissionpolicy has parts that bring admission policies. A policy is an expression in CEL by which the API
// server refuses objects of any kind ([Validating]) or changes them ([Mutating]).
//
//	operator.Main(controller.New(reconcile), admissionpolicy.Mutating(&admissionv1.MutatingAdmissionPolicy{…}))
//
// The command manifests prints the policies with the labels of the installation, and the command uninstall removes
// them. The running program needs no permission for a policy. The API server enforces a policy while the program is
// down too. The printed names end with the namespace of the installation, such as add-name.webapp-system. With
// --watch-namespace, the policies concern the watched namespaces, and objects outside of namespaces.
//
// yare dev, yaretest.RunParts and explorations apply the policies before they start the program. They fail if the API
// server finds a mistake in an expression. They do not apply other objects, such as the parameters of a policy, which
// operator.AddManifest adds to the manifests.
package admissionpolicy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Validating returns a part that brings a ValidatingAdmissionPolicy, which refuses requests. The part sets the
// policyName of the bindings. Without bindings, the part adds one that denies what the policy refuses, for all objects
// that the policy concerns. A policy with a paramKind needs bindings.
func Validating(
	policy *admissionv1.ValidatingAdmissionPolicy, bindings ...*admissionv1.ValidatingAdmissionPolicyBinding,
) operator.Part {
	standard := new(admissionv1.ValidatingAdmissionPolicyBinding)
	standard.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
	return newPart(policy, bindings, standard)
}

// Mutating returns a part that brings a MutatingAdmissionPolicy, which changes objects before they are stored.
// Kubernetes serves such policies in v1 since version 1.36. The part sets the policyName of the bindings. Without
// bindings, the part adds one for all objects that the policy concerns. A policy with a paramKind needs bindings.
func Mutating(
	policy *admissionv1.MutatingAdmissionPolicy, bindings ...*admissionv1.MutatingAdmissionPolicyBinding,
) operator.Part {
	return newPart(policy, bindings, new(admissionv1.MutatingAdmissionPolicyBinding))
}

// part is a part of [Validating] or [Mutating].
type part struct {
	// name is the name of the policy. objects are the policy and its bindings, as decoded JSON.
	name    string
	objects []map[string]any
	err     error
}

// newPart returns the part of a policy. standard is its binding if there are no bindings.
func newPart[T, B any, P kube.ObjectOf[T], PB kube.ObjectOf[B]](policy *T, bindings []*B, standard *B) part {
	if policy == nil || slices.Contains(bindings, nil) {
		return part{err: fmt.Errorf("a %s or one of its bindings is nil", reflect.TypeFor[T]().Name())}
	}
	p := part{name: P(policy).GetName()}
	m := new(operator.Manifests)
	p.err = operator.AddManifest[T, P](m, policy)
	if len(bindings) == 0 && p.err == nil {
		PB(standard).SetName(p.name)
		bindings = []*B{standard}
		if manifests.ObjectAt(m.Objects[0], "spec")["paramKind"] != nil {
			p.err = fmt.Errorf("the %s %s has a paramKind: give a binding whose paramRef names the parameters",
				manifests.Kind(m.Objects[0]), p.name)
		}
	}
	for _, b := range bindings {
		p.err = errors.Join(p.err, operator.AddManifest[B, PB](m, b))
	}
	p.objects = m.Objects
	return p
}

// Needs returns the needs of a service, which does not keep a program running.
func (p part) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, p.err }

// Start does nothing: the API server enforces the policy.
func (part) Start(context.Context, *controller.Runtime) error { return nil }

// Policies returns the policy and its bindings: see the PolicyBringer of package internal/feature.
func (p part) Policies(namespace string, watched []string) []map[string]any {
	var all []map[string]any
	for _, object := range p.objects {
		object = runtime.DeepCopyJSON(object)
		manifests.ObjectAt(object, "metadata")["name"] = manifests.ClusterName(manifests.Name(object), namespace)
		if strings.HasSuffix(manifests.Kind(object), "Binding") {
			manifests.ObjectAt(object, "spec")["policyName"] = manifests.ClusterName(p.name, namespace)
			if len(watched) > 0 {
				values := make([]any, len(watched))
				for i, namespace := range watched {
					values[i] = namespace
				}
				selector := manifests.ObjectAt(object, "spec", "matchResources", "namespaceSelector")
				expressions, _ := selector["matchExpressions"].([]any)
				selector["matchExpressions"] = append(expressions,
					map[string]any{"key": corev1.LabelMetadataName, "operator": "In", "values": values})
			}
		}
		all = append(all, object)
	}
	return all
}
