package crd_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

type part struct {
	Host string `json:"host"`
}

type defaultedPart part

func (defaultedPart) CRDTag() string { return `default={"host":"a"}` }

// promotedPart has the method of a type that it embeds.
type promotedPart struct{ defaultedPart }

// EmbeddedParts is embedded by a pointer.
type EmbeddedParts struct {
	Embedded part `json:"embedded"`
}

type sparseSpec struct {
	*EmbeddedParts
	Plain      part          `json:"plain"`
	Omitempty  part          `json:"omitempty,omitempty"`
	Omitzero   part          `json:"omitzero,omitzero"`
	Optional   part          `json:"optional" crd:"rule='self.host != ''a'', required',optional"`
	Required   part          `json:"required,omitempty" crd:"required"`
	Defaulted  part          `json:"defaulted" crd:"default={\"host\":\"a\"}"`
	ByType     defaultedPart `json:"byType"`
	ByPromoted promotedPart  `json:"byPromoted"`
	ByPath     struct {
		Optional part `json:"optional"`
		Required part `json:"required,omitempty"`
		Dotted   part `json:"a.b"`
	} `json:"byPath"`
	Overruled part                                      `json:"overruled" crd:"required"`
	Opaque    autoscalingv2.HorizontalPodAutoscalerSpec `json:"opaque" crd:"type=object"`
	Scaler    autoscalingv2.HorizontalPodAutoscalerSpec `json:"scaler"`
	Template  corev1.PodTemplateSpec                    `json:"template"`
	Selector  metav1.LabelSelector                      `json:"selector"`
}

func (sparseSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Sparse", Tags: map[string]string{
		".spec.byPath.optional": "optional", ".spec.byPath.required": "required", `.spec.byPath.a\.b`: "optional", ".spec.overruled": "optional",
	}}
}

// Promise 10: of the structs that are the zero value of their types, an apply sends those that the schema of the kind requires,
// and no others.
func TestApplySendsTheUnsetStructsThatTheSchemaRequires(t *testing.T) {
	t.Parallel()
	definition, err := crd.Of[kube.CustomResource[sparseSpec, part]]()
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	c := kube.NewClientFromHandler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: http.StatusOK, Body: []byte(`{}`)}, json.Unmarshal(r.Body, &body)
	}))
	object := &kube.CustomResource[sparseSpec, part]{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}}
	object.Spec.EmbeddedParts = &EmbeddedParts{}
	if _, err := kube.Apply(t.Context(), c, object); err != nil {
		t.Fatal(err)
	}
	structs := 0
	var compare func(path string, s *crd.Schema, sent map[string]any)
	compare = func(path string, s *crd.Schema, sent map[string]any) {
		for name, p := range s.Properties {
			if p.Type != "object" || path == "" && name != "spec" {
				continue
			}
			structs++
			value, isSent := sent[name]
			if isRequired := slices.Contains(s.Required, name); isSent != isRequired {
				t.Errorf("%s.%s: it was sent: %t, it is required: %t", path, name, isSent, isRequired)
			}
			if inner, ok := value.(map[string]any); ok {
				compare(path+"."+name, p, inner)
			}
		}
	}
	compare("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, body)
	if structs < 18 {
		t.Errorf("%d structs were compared", structs)
	}
	opaque := body["spec"].(map[string]any)["opaque"].(map[string]any)
	if _, isSent := opaque["scaleTargetRef"]; isSent || len(opaque) != 1 {
		t.Errorf("%v was sent, of which no schema requires anything", opaque)
	}
}
