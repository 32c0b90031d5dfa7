// The program of TestApplyPolicies: an operator with an admission policy.
package main

import (
	"context"
	"flag"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/admissionpolicy"
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
		Parts: func() ([]operator.Part, error) {
			parts := []operator.Part{controller.New(reconcile)}
			if field != "none" {
				parts = append(parts, limit(field))
			}
			return parts, nil
		},
		Manifests: func(m *operator.Manifests) error {
			return operator.EditManifest(m, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].TTY = false })
		},
	}.Main()
}

func reconcile(context.Context, *valve, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// limit returns a policy about a field.
func limit(field string) operator.Part {
	return admissionpolicy.Validating(&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "valve-flow"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"policies.yaretest.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"valves"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "object.spec." + field + " < 100", Message: "the pipe bursts"}},
		},
	})
}
