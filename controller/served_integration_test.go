package controller_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// Shrub is a kind that no other test defines.
type Shrub = kube.CustomResource[ShrubSpec, kube.None]

type ShrubSpec struct{}

func (ShrubSpec) Definition() kube.Definition {
	return kube.Definition{Group: "shrubs.example.com", Version: "v1", Kind: "Shrub"}
}

// A kind comes, goes and comes back on a real server. The discovery of the server shows
// this.
func TestIfServedOnARealServer(t *testing.T) {
	c, garden := onServer(t)
	cluster := yaretest.Shared(t)
	shrubs := resourceOf[Shrub](t)
	isDiscovered := func() (bool, error) {
		resources, err := wire.Discover(t.Context(), c, schema.GroupVersion{Group: "shrubs.example.com", Version: "v1"})
		for _, r := range resources {
			if r == shrubs {
				return true, err
			}
		}
		return false, err
	}
	expectDiscovered := func(want bool) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			if is, err := isDiscovered(); is != want || err != nil {
				return fmt.Errorf("shrubs are discovered: %t, %v", is, err)
			}
			return nil
		})
	}
	expectDiscovered(false)
	owner := create(t, c, garden("eden"))
	var calls journal
	start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		shrubs, err := kube.Namespaced[Shrub](c, g.Namespace).List(ctx)
		calls.record(fmt.Sprint(len(shrubs)))
		return controller.Done(), err
	}, controller.Owns[Shrub](controller.IfServed())))
	expect := func(want string) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			for _, call := range calls.drain() {
				if call == want {
					return nil
				}
			}
			return fmt.Errorf("no reconcile has read %s shrubs", want)
		})
	}
	expect("0")
	for range 2 {
		yaretest.Define[Shrub](t, cluster)
		expectDiscovered(true)
		shrub := &Shrub{}
		shrub.Namespace, shrub.Name = owner.Namespace, "box"
		create(t, c, kube.OwnedBy(owner, shrub))
		expect("1")
		cluster.Kubectl(t, "", "delete", "crd", "shrubs.shrubs.example.com")
		expect("0")
		expectDiscovered(false)
	}
}
