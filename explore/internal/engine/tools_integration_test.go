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
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// KnobSpec is the desired state of a Knob.
type KnobSpec struct {
	Text  string            `json:"text"`
	Notes map[string]string `json:"notes,omitempty"`
}

// Definition returns the definition of Knobs.
func (KnobSpec) Definition() kube.Definition {
	return kube.Definition{Group: "explore.example.com", Version: "v1", Kind: "Knob"}
}

// Knob has a text and notes.
type Knob = kube.CustomResource[KnobSpec, kube.None]

// A right operator was reported as wrong when the user removed a field in a later step, and a GitOps tool had applied the samples
// before: the tool owned the field too, so the field stayed.
func TestToolKeepsNoFieldOfALaterStep(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Knob](t, cluster)
	reconcile := func(ctx context.Context, k *Knob, c *kube.Client) (controller.Action, error) {
		_, err := kube.Apply(ctx, c, kube.OwnedBy(k, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Annotations: k.Spec.Notes}, Data: map[string]string{"text": k.Spec.Text},
		}))
		return controller.Done(), err
	}
	parts := func() []operator.Part {
		return []operator.Part{controller.New(reconcile, controller.Owns[corev1.ConfigMap]())}
	}
	apply := func(name, spec string) finding.Step {
		sample := `{"apiVersion":"explore.example.com/v1","kind":"Knob","metadata":{"name":"web"},"spec":` + spec + `}`
		return finding.Step{Name: name, Apply: []json.RawMessage{json.RawMessage(sample)}}
	}
	record, err := engine.Explore(t.Context(), engine.Parts("knobs", parts), engine.Settings{
		Config: cluster.Config(), Only: []faults.Kind{faults.GitOps},
		Steps: []finding.Step{apply("apply", `{"text":"a","notes":{"first":"1"}}`), apply("change the notes", `{"text":"a","notes":{"second":"2"}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range record.Findings {
		t.Errorf("a right operator has the finding %s: %+v", f.Verdict, f.Differences)
	}
	if never := record.Coverage.NeverHappened; len(never) > 0 {
		t.Errorf("kinds never happened: %v", never)
	}
}
