package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: two owners of one controller want a child of the same name, outside of namespaces, and mark it by
// label. Each took the child over from the other one, without an end and without a line in the log. The second
// owner must be refused, as it is with owner references.
func TestTwoOwnersByLabelDoNotFight(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("a"))
		create(t, c, garden("b"))
		const enough = 200
		var calls atomic.Int64
		var refused atomic.Bool
		p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if calls.Add(1) > enough {
				return controller.Done(), nil // the test would never end
			}
			_, err := kube.Apply(ctx, c, kube.OwnedByLabel(g, ownerLabel, &Country{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
			if errors.Is(err, kube.ErrForeignChild) {
				refused.Store(true)
				return controller.Done(), nil
			}
			return controller.Done(), err
		}, controller.OwnsByLabel[Country](ownerLabel)))
		time.Sleep(time.Second)
		writes := s.count(func(r *wire.Request) bool { return r.Verb.IsWrite() && r.Resource.Plural == "countries" })
		if n := calls.Load(); n > 20 {
			t.Errorf("%d reconciles and %d writes of the child within a second: the owners fight", n, writes)
		}
		if !refused.Load() {
			t.Error("no owner was refused: the child of one owner was taken over by the other one")
		}
		t.Logf("errors in the log: %d", len(p.log.lines(slog.LevelError)))
	})
}

// Regression: the cleanup of an owner deletes its children by label, as the comment of OwnsByLabel says. It
// destroyed the child of another owner, which did not reconcile at that time.
func TestChildByLabelIsNotDestroyedWithAnotherOwner(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		a := create(t, c, garden("a"))
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Spec.Size == 2 { // such as suspended, or waiting for something outside
				return controller.Done(), nil
			}
			_, err := kube.Apply(ctx, c, kube.OwnedByLabel(g, ownerLabel, &Country{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
			if errors.Is(err, kube.ErrForeignChild) {
				return controller.Done(), nil
			}
			return controller.Done(), err
		}
		cleanup := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Cleanup, error) {
			children, err := kube.Everywhere[Country](c).List(ctx, kube.Label(ownerLabel, string(g.UID)))
			if err != nil {
				return controller.CleanupPending(), err
			}
			for _, child := range children {
				if err := kube.IgnoreNotFound(c.Delete(ctx, child)); err != nil {
					return controller.CleanupPending(), err
				}
			}
			return controller.CleanupDone(), nil
		}
		start(t, c, controller.New(reconcile, controller.OwnsByLabel[Country](ownerLabel)).Finalizer(finalizer, cleanup))
		time.Sleep(time.Second)
		made := s.object("countries", "", "shared")
		if made == nil || meta(made)["labels"].(object)[ownerLabel] != string(a.UID) {
			t.Fatalf("the child of a is %v", made)
		}
		if _, err := kube.Namespaced[Garden](c, "default").Modify(t.Context(), "a", func(g *Garden) error { g.Spec.Size = 2; return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		create(t, c, garden("b"))
		time.Sleep(time.Second)
		remove(t, c, garden("b"))
		time.Sleep(time.Second)
		now := s.object("countries", "", "shared")
		if now == nil {
			t.Error("the child of a was deleted with b")
		} else if meta(now)["uid"] != meta(made)["uid"] {
			t.Error("the child of a was deleted and made anew")
		}
	})
}

// Regression: the operator is installed twice, with the same field manager. The child of one installation was taken
// over by the other one.
func TestChildByLabelOfAnotherInstallation(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		theirs := &Country{ObjectMeta: metav1.ObjectMeta{Name: "shared", Labels: map[string]string{ownerLabel: "another-uid"}}}
		apply(t, c.WithFieldManager("garden.test.example.com"), theirs)
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			_, _ = kube.Apply(ctx, c, kube.OwnedByLabel(g, ownerLabel, &Country{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
			return controller.Done(), nil
		}, controller.OwnsByLabel[Country](ownerLabel)))
		time.Sleep(time.Second)
		if got := meta(s.object("countries", "", "shared"))["labels"].(object)[ownerLabel]; got != "another-uid" {
			t.Errorf("the child of the owner another-uid has the owner %v now", got)
		}
	})
}
