package controller_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// Orchard is a type of its own, with methods, and not an alias.
type Orchard kube.CustomResource[OrchardSpec, OrchardStatus]

type OrchardSpec struct {
	Trees int `json:"trees"`
}

type OrchardStatus struct {
	Grown int `json:"grown,omitempty"`
}

func (OrchardSpec) Definition() kube.Definition {
	return kube.Definition{Group: "test.example.com", Version: "v1", Kind: "Orchard"}
}

func (o *Orchard) isGrown() bool { return o.Status.Grown == o.Spec.Trees }

// The functions that require a Definition accept it when the program is compiled.
var (
	_ = crd.Of[Orchard]
	_ = operator.Watcher[Orchard]
)

// A type of its own works as an alias does: through crd, and in a controller of a real server.
func TestOwnTypeOnARealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	definition, err := crd.Of[Orchard]()
	if err != nil || definition.Metadata.Name != "orchards.test.example.com" {
		t.Fatalf("its CustomResourceDefinition is %+v, %v", definition, err)
	}
	kind, err := kube.TypeOf[Orchard]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, kind)
	c := cluster.Client(t).InNamespaces(cluster.Namespace(t))
	orchards := kube.Namespaced[Orchard](c, c.Namespaces()[0])
	if _, err := orchards.Create(t.Context(), &Orchard{ObjectMeta: metav1.ObjectMeta{Name: "apples"}, Spec: OrchardSpec{Trees: 3}}); err != nil {
		t.Fatal(err)
	}
	start(t, c, controller.New(func(ctx context.Context, o *Orchard, c *kube.Client) (controller.Action, error) {
		if !o.isGrown() {
			o.Status.Grown = o.Spec.Trees
		}
		return controller.Done(), c.ApplyStatus(ctx, o)
	}))
	yaretest.Eventually(t, func() error {
		o, err := orchards.Get(t.Context(), "apples")
		if err == nil && !o.isGrown() {
			err = fmt.Errorf("its status is %+v", o.Status)
		}
		return err
	})
}
