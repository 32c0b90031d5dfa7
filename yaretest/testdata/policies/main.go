// The program of TestApplyPolicies: an operator whose manifests have an admission policy.
package main

import (
	"context"
	"errors"
	"flag"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// ValveSpec is the kind that the test defines too.
type ValveSpec struct {
	Flow int `json:"flow"`
}

func (ValveSpec) Definition() kube.Definition {
	return kube.Definition{Group: "policies.yaretest.example.com", Version: "v1", Kind: "Valve"}
}

type valve = kube.CustomResource[ValveSpec, struct{}]

func main() {
	var field string
	operator.Program{
		Flags: func(flags *flag.FlagSet) { flags.StringVar(&field, "field", "flow", "the field that the policy names") },
		Parts: func() ([]operator.Part, error) { return []operator.Part{controller.New(reconcile)}, nil },
		Manifests: func(m *operator.Manifests) error {
			return errors.Join(
				operator.EditManifest(m, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].TTY = false }),
				addPolicy(m, field),
			)
		},
	}.Main()
}

func reconcile(context.Context, *valve, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

func addPolicy(m *operator.Manifests, field string) error {
	if field == "none" {
		return nil
	}
	name := "valve-flow." + m.Namespace
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"policies.yaretest.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"valves"}},
	}}
	return errors.Join(
		operator.AddManifest(m, &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
				Validations:      []admissionv1.Validation{{Expression: "object.spec." + field + " < 100", Message: "the pipe bursts"}},
			},
		}),
		operator.AddManifest(m, &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		}),
	)
}
