package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// SealSpec is the desired state of a Seal.
type SealSpec struct {
	// Text stands in a ConfigMap that cannot change.
	Text string `json:"text"`
}

// SealStatus is the observed state of a Seal.
type SealStatus struct {
	// Problem is why the ConfigMap has another text.
	Problem string `json:"problem,omitempty"`
}

// Definition returns the definition of Seals.
func (SealSpec) Definition() kube.Definition {
	return kube.Definition{Group: "explore.example.com", Version: "v1", Kind: "Seal"}
}

// Seal is a text that cannot change.
type Seal = kube.CustomResource[SealSpec, SealStatus]

// sealParts returns the parts of an operator of Seals. The operator reports or hides that the server
// refuses a change.
func sealParts(isReporting bool) func() []operator.Part {
	reconcile := func(ctx context.Context, s *Seal, c *kube.Client) (controller.Action, error) {
		isFixed := true
		_, err := kube.Apply(ctx, c, kube.OwnedBy(s, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, Immutable: &isFixed, Data: map[string]string{"text": s.Spec.Text},
		}))
		if err != nil && !kube.IsInvalid(err) {
			return controller.Done(), err
		}
		s.Status.Problem = ""
		if err != nil && isReporting {
			s.Status.Problem = "the text cannot change"
		}
		return controller.Done(), c.ApplyStatus(ctx, s)
	}
	return func() []operator.Part {
		return []operator.Part{controller.New(reconcile, controller.Owns[corev1.ConfigMap]())}
	}
}

// A refused change is no mistake of an operator that reports the refusal and recovers.
func TestRefusedChange(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Seal](t, cluster)
	applying := func(text string) finding.Step {
		return finding.Step{Name: "apply " + text, Apply: []json.RawMessage{
			json.RawMessage(`{"apiVersion":"explore.example.com/v1","kind":"Seal","metadata":{"name":"web"},"spec":{"text":"` + text + `"}}`),
		}}
	}
	options := engine.Settings{
		Config: cluster.Config(), Steps: []finding.Step{applying("a"), applying("b"), applying("a")},
		Only: []faults.Kind{faults.Transition},
	}
	t.Run("reported", func(t *testing.T) {
		t.Parallel()
		record, err := engine.Explore(t.Context(), engine.Parts("reporting", sealParts(true)), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range record.Findings {
			t.Errorf("%s: %s", f.Verdict, report.Summary(f))
		}
		if len(record.Coverage.RefusedWrites) == 0 {
			t.Error("the refused write is not reported")
		}
	})
	t.Run("hidden", func(t *testing.T) {
		if os.Getenv("YARE_TWINS") == "" {
			t.Skip("to confirm a finding takes minutes: set YARE_TWINS=1")
		}
		t.Parallel()
		record, err := engine.Explore(t.Context(), engine.Parts("hiding", sealParts(false)), options)
		if err != nil {
			t.Fatal(err)
		}
		if len(record.Findings) == 0 || record.Findings[0].Verdict != finding.Wrong {
			t.Errorf("an operator that hides a refused change has the findings %+v", record.Findings)
		}
	})
}
