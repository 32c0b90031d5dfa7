package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// DialSpec is the desired state of a Dial.
type DialSpec struct {
	Text string `json:"text"`
	// Options is filled by the operator.
	Options map[string]string `json:"options,omitempty"`
}

// Definition returns the definition of Dials.
func (DialSpec) Definition() kube.Definition {
	return kube.Definition{Group: "explore.example.com", Version: "v1", Kind: "Dial"}
}

// Dial has a text.
type Dial = kube.CustomResource[DialSpec, kube.None]

// dialDefinition is the definition of Dials, as code generators write it: the spec need not be there, and
// has a required field.
const dialDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dials.explore.example.com}
spec:
  group: explore.example.com
  names: {kind: Dial, listKind: DialList, plural: dials, singular: dial}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [text]
            properties:
              text: {type: string}
              options: {type: object, additionalProperties: {type: string}}
`

// The user of many changes removed the whole spec of a sample, if its definition allows an object without one. The API server
// accepts the creation of such an object, and refuses the change if the program has written a field of the spec: this field stays,
// and the required ones go. So the run with many changes could not be made. Operators that add a finalizer by an update own
// fields of the spec.
func TestManyChangesKeepTheSpec(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Kubectl(t, dialDefinition, "apply", "-f", "-")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/dials.explore.example.com")
	reconcile := func(ctx context.Context, d *Dial, c *kube.Client) (controller.Action, error) {
		_, err := kube.Apply(ctx, c, kube.OwnedBy(d, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}, Data: map[string]string{"text": d.Spec.Text},
		}))
		if err == nil && d.Spec.Options == nil {
			options := map[string]any{"spec": map[string]any{"options": map[string]string{"volume": "low"}}}
			_, err = kube.Namespaced[Dial](c, d.Namespace).Patch(ctx, d.Name, kube.MergePatch(options))
		}
		return controller.Done(), err
	}
	parts := func() []operator.Part {
		return []operator.Part{controller.New(reconcile, controller.Owns[corev1.ConfigMap](), controller.Writes[Dial](wire.VerbPatch))}
	}
	sample := json.RawMessage(`{"apiVersion":"explore.example.com/v1","kind":"Dial","metadata":{"name":"web"},"spec":{"text":"a"}}`)
	record, err := engine.Explore(t.Context(), engine.Parts("dials", parts), engine.Settings{
		Config: cluster.Config(), Steps: []finding.Step{{Name: "apply", Apply: []json.RawMessage{sample}}}, Only: []faults.Kind{faults.ManyChanges},
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed := record.Coverage.FailedRuns; len(failed) > 0 {
		t.Errorf("runs could not be made: %v", failed)
	}
	if never := record.Coverage.NeverHappened; len(never) > 0 {
		t.Errorf("kinds never happened: %v", never)
	}
}
