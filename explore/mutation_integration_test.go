package explore_test

import (
	"fmt"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/admissionpolicy"
	"github.com/yare-go/yare/yaretest"
)

// markedNoteParts returns noteParts with a policy that adds a label to each new ConfigMap.
func markedNoteParts() []operator.Part {
	return append(noteParts(), admissionpolicy.Mutating(&admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "mark-pages"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{labels: {"page": "marked"}}}`},
			}},
		},
	}))
}

// An operator is explored under the policies of its parts, in this process and as a program without files to install.
func TestExploredUnderAPolicyOfParts(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	yaretest.Define[Note](t, yaretest.Shared(t))
	for name, o := range map[string]explore.Operator{
		"parts":   explore.Parts(markedNoteParts),
		"program": explore.Binary{Path: os.Args[0], Env: []string{programVariable + "=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Run(t, o, explore.Settings{
				Scenario: []explore.Step{{Name: "apply a note", Apply: []kube.Object{
					&Note{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: NoteSpec{Text: "Hello!"}},
				}}},
				Only: []string{"watch-twice"},
				AtRest: []explore.Check{{Name: "the page has the label", Verify: func(s explore.State) error {
					for _, page := range pages(s) {
						if page.Labels["page"] == "marked" {
							return nil
						}
					}
					return fmt.Errorf("no page of %d has it", len(pages(s)))
				}}},
			})
		})
	}
}
