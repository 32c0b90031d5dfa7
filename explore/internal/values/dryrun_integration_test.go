package values_test

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// GateSpec has an immutable field, and a rule that its schema does not show.
type GateSpec struct {
	Width int32 `json:"width" crd:"minimum=0"`
	Kind  int32 `json:"kind" crd:"minimum=0"`
}

// Definition returns the definition of gates.
func (GateSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "values.example.com", Version: "v1", Kind: "Gate",
		Rules: []kube.Rule{
			{Rule: "self.spec.width != 3", Message: "no gate is that wide"},
			{Rule: "self.spec.kind == oldSelf.spec.kind", Message: "the kind is immutable"},
		},
	}
}

// Gate is the whole resource.
type Gate = kube.CustomResource[GateSpec, kube.None]

// A dry run says which candidates the server refuses, and why, and stores nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster := yaretest.Shared(t)
	yaretest.Define[Gate](t, cluster)
	namespace := cluster.Namespace(t)
	gates := kube.Namespaced[Gate](cluster.Client(t), namespace)
	gate := &Gate{Spec: GateSpec{Width: 2, Kind: 2}}
	gate.Name = "sample"
	if _, err := gates.Apply(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	sample := map[string]any{"metadata": map[string]any{"name": "sample"}, "spec": map[string]any{"width": 2, "kind": 2}}
	transitions, _ := find(t, schemaOf[Gate](t), sample, values.Options{})
	api := kube.Dynamic(gates.Client(), gates.Resource(), namespace)

	refusals := map[string]string{}
	for _, change := range transitions {
		if change.From != "sample" {
			continue
		}
		refusal, err := values.DryRun(t.Context(), api, change.Objects[0])
		if err != nil {
			t.Fatal(err)
		}
		refusals[change.String()] = refusal
	}
	for change, want := range map[string]string{
		"spec.width: sample -> minimum": "",
		"spec.width: sample -> maximum": "no gate is that wide",
		"spec.kind: sample -> minimum":  "the kind is immutable",
	} {
		refusal, tried := refusals[change]
		if !tried || (refusal == "") != (want == "") || !strings.Contains(refusal, want) {
			t.Errorf("%s: the refusal is %q (tried: %t), want %q", change, refusal, tried, want)
		}
	}
	live, err := gates.Get(t.Context(), "sample")
	if err != nil {
		t.Fatal(err)
	}
	if live.Spec != gate.Spec {
		t.Errorf("the dry runs stored %+v", live.Spec)
	}
}
