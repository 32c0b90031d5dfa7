package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Bug: the second status in one reconcile conflicted with the first.
func TestTwoStatusesInOneReconcile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var failed []error
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Status.Size == 2 {
				return controller.Done(), nil
			}
			for size := range 2 { // in progress, and done
				g.Status.Size = size + 1
				if err := c.ApplyStatus(ctx, g); err != nil {
					failed = append(failed, err)
					return controller.Done(), err
				}
			}
			return controller.Done(), nil
		}))
		time.Sleep(time.Minute)
		if len(failed) > 0 {
			t.Errorf("%d errors, the first: %v", len(failed), failed[0])
		}
		if g, err := kube.Get[Garden](t.Context(), c, "default", "eden"); err != nil || g.Status.Size != 2 {
			t.Errorf("the object is %+v: %v", g, err)
		}
	})
}

// Bug: a reconcile that is slower than others change its object never wrote its status, and
// the log was empty.
func TestStatusOfABusyObject(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			select {
			case <-time.After(30 * time.Second):
			case <-ctx.Done():
			}
			g.Status.Size = g.Spec.Size
			return controller.Done(), c.ApplyStatus(ctx, g)
		}))
		gardens := kube.Namespaced[Garden](c, "default")
		for i := range 12 {
			time.Sleep(10 * time.Second)
			heartbeat := map[string]any{"metadata": map[string]any{"annotations": map[string]string{"heartbeat": fmt.Sprint(i)}}}
			if _, err := gardens.Patch(t.Context(), "eden", kube.MergePatch(heartbeat)); err != nil {
				t.Fatal(err)
			}
		}
		g, err := gardens.Get(t.Context(), "eden")
		if err != nil || g.Status.Size != g.Spec.Size || g.Status.Size == 0 {
			t.Errorf("the status after two minutes is %+v: %v", g.Status, err)
		}
	})
}
