package yaretest_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

type formerValveSpec struct {
	Size int `json:"size,omitempty" crd:"maximum=5"`
}

type valveSpec struct {
	Size   int    `json:"size,omitempty" crd:"maximum=9"`
	Colour string `json:"colour,omitempty"`
}

type narrowValveSpec struct {
	Size int `json:"size,omitempty" crd:"maximum=3"`
}

func (formerValveSpec) Definition() kube.Definition { return valveDefinition() }
func (valveSpec) Definition() kube.Definition       { return valveDefinition() }
func (narrowValveSpec) Definition() kube.Definition { return valveDefinition() }

func valveDefinition() kube.Definition {
	return kube.Definition{Group: "changed.yaretest.yare.dev", Version: "v1", Kind: "Valve"}
}

type (
	formerValve = kube.CustomResource[formerValveSpec, kube.None]
	valve       = kube.CustomResource[valveSpec, kube.None]
	narrowValve = kube.CustomResource[narrowValveSpec, kube.None]
)

// Bug: after a change of a definition, Define did not wait until the API server used the new schema. Writes lost the new fields,
// with a warning and no error.
func TestDefineOfAChangedDefinition(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	valves := kube.Namespaced[valve](cluster.Client(t), namespace)
	for i := range 20 {
		yaretest.Define[formerValve](t, cluster)
		yaretest.Define[valve](t, cluster)
		sent := &valve{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("v", i)}, Spec: valveSpec{Size: 7, Colour: "red"}}
		if stored, err := valves.Create(t.Context(), sent); err != nil || stored.Spec != sent.Spec {
			t.Errorf("try %d: stored %+v, %v", i, stored, err)
		}
	}
	// A change that adds no field.
	yaretest.Define[narrowValve](t, cluster)
	if _, err := kube.Namespaced[narrowValve](cluster.Client(t), namespace).Create(t.Context(),
		&narrowValve{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Spec: narrowValveSpec{Size: 4}}); !kube.IsInvalid(err) {
		t.Errorf("the former schema is in use: %v", err)
	}
}
