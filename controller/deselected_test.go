package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Regression: an object with the finalizer stops matching the selectors of For. Its cleanup waits for its child, by
// CleanupPending. With OwnsByLabel nothing called the cleanup again: the object kept the finalizer, and its deletion
// had no end.
func TestCleanupOfADeselectedOwnerByLabelIsCalledAgain(t *testing.T) {
	t.Parallel()
	for name, byLabel := range map[string]bool{"by label": true, "by owner reference": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				g := garden("eden")
				g.Labels = map[string]string{"shard": "1"}
				create(t, c, g)
				child := func(g *Garden) *Plant {
					if byLabel {
						return kube.OwnedByLabel(g, ownerLabel, plant("rose"))
					}
					return kube.OwnedBy(g, plant("rose"))
				}
				reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
					_, err := kube.Apply(ctx, c, child(g))
					return controller.Done(), err
				}
				cleanup := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Cleanup, error) {
					calls.record("cleanup")
					_, err := kube.Get[Plant](ctx, c, "default", "rose")
					if kube.IsNotFound(err) {
						return controller.CleanupDone(), nil
					}
					return controller.CleanupPending(), err
				}
				option := controller.Owns[Plant]()
				if byLabel {
					option = controller.OwnsByLabel[Plant](ownerLabel)
				}
				start(t, c, controller.New(reconcile, option, controller.For(controller.Select(kube.Label("shard", "1")))).Finalizer(finalizer, cleanup))
				time.Sleep(time.Second)
				if _, err := kube.Namespaced[Garden](c, "default").Modify(t.Context(), "eden", func(g *Garden) error { g.Labels = nil; return nil }); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if n := len(calls.drain()); n == 0 {
					t.Fatal("the cleanup was not called")
				}
				remove(t, c, plant("rose"))
				time.Sleep(time.Hour)
				if n := len(calls.drain()); n == 0 {
					t.Error("the child is gone for an hour, and the cleanup was not called again")
				}
				remove(t, c, garden("eden"))
				time.Sleep(time.Hour)
				if o := s.object("gardens", "default", "eden"); o != nil {
					t.Errorf("an hour after the deletion the object has the finalizers %v", meta(o)["finalizers"])
				}
			})
		})
	}
}

// Regression: the same for a cleanup that waits for a change of the object itself, or that has failed with an error
// that only such a change cures.
func TestCleanupOfADeselectedObjectIsCalledAfterItsChange(t *testing.T) {
	t.Parallel()
	for name, unapproved := range map[string]error{"pending": nil, "terminal": controller.Terminal(errors.New("not approved"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				g := garden("eden")
				g.Labels = map[string]string{"shard": "1"}
				create(t, c, g)
				reconcile := func(context.Context, *Garden, *kube.Client) (controller.Action, error) { return controller.Done(), nil }
				cleanup := func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
					if g.Annotations["approved"] == "" {
						return controller.CleanupPending(), unapproved
					}
					return controller.CleanupDone(), nil
				}
				start(t, c, controller.New(reconcile, controller.For(controller.Select(kube.Label("shard", "1")))).Finalizer(finalizer, cleanup))
				time.Sleep(time.Second)
				modify := func(f func(*Garden)) {
					t.Helper()
					if _, err := kube.Namespaced[Garden](c, "default").Modify(t.Context(), "eden", func(g *Garden) error { f(g); return nil }); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
				}
				modify(func(g *Garden) { g.Labels = nil })
				modify(func(g *Garden) { g.Annotations = map[string]string{"approved": "yes"} })
				if f := meta(s.object("gardens", "default", "eden"))["finalizers"]; f != nil {
					t.Errorf("the object has changed, and an hour later it has the finalizers %v", f)
				}
			})
		})
	}
}
