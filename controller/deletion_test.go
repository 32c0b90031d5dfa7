package controller_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 17: a predicate on the reconciled kind decides which edits matter. It never keeps
// the cleanup of a deleted object from running.
func TestPredicatesNeverHideADeletion(t *testing.T) {
	t.Parallel()
	for name, predicate := range map[string]controller.Predicate{
		"labels": controller.LabelsChanged, "annotations": controller.AnnotationsChanged, "nothing matters": never,
	} {
		for _, before := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", deleted before the start", false: ", deleted while running"}[before], func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *server) {
					var calls journal
					c := s.client()
					g := garden("eden")
					g.Finalizers = []string{finalizer}
					create(t, c, g)
					if before {
						remove(t, c, g)
					}
					start(t, c, gardening(&calls, controller.Reconciled(controller.When(predicate))))
					synctest.Wait()
					if !before {
						remove(t, c, g)
						synctest.Wait()
					}
					if got := calls.drain(); !slices.Contains(got, "cleanup eden") {
						t.Errorf("calls: %q, want a cleanup", got)
					}
					if s.object("gardens", "default", "eden") != nil {
						t.Error("the deleted object still exists")
					}
				})
			})
		}
	}
}

// While the watch of a deleted owner lagged, each deletion by the garbage collector made the
// reconcile create the child of the former owner again, up to 20 times a second.
func TestChildOfADeletedOwnerIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		eden := create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record("reconcile " + g.Name)
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose")))
			return controller.Done(), err
		}, controller.Owns[Plant]()))
		synctest.Wait()
		calls.drain()
		stream := s.Stream(fakeserver.StreamID{Plural: "gardens"})
		stream.Freeze()
		remove(t, c, eden)
		if n := s.CollectGarbage(); n != 1 {
			t.Fatalf("the garbage collector deleted %d objects, want the plant", n)
		}
		synctest.Wait()
		if got := calls.drain(); len(got) > 0 || s.object("plants", "default", "rose") != nil {
			t.Errorf("calls for an owner that does not exist: %q", got)
		}
		stream.Thaw()
		create(t, c, garden("eden"))
		synctest.Wait()
		if s.object("plants", "default", "rose") == nil {
			t.Error("the next owner of that name has no child")
		}
	})
}

// Regression: an owner is deleted, and its watch lags. The garbage collector deletes the child while an apply of the
// child is under way. The server refuses the apply, because its uid is gone. The second attempt created the child of the
// former owner again.
func TestChildOfADeletedOwnerIsNotCreatedByASecondAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		eden := create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, rose(g.Spec.Size)))
			return controller.Done(), err
		}, controller.Owns[Plant]()))
		synctest.Wait()
		stream := s.Stream(fakeserver.StreamID{Plural: "gardens"})
		var applies, created int
		s.before = func(r *wire.Request) error {
			if r.ContentType != wire.ContentApply || r.Resource.Plural != "plants" {
				return nil
			}
			if applies++; applies == 1 {
				stream.Freeze()
				remove(t, c, eden)
				s.CollectGarbage()
				time.Sleep(time.Second) // the deletion of the child arrives
			} else {
				created++
			}
			return nil
		}
		eden.Spec.Size = 3
		if _, err := kube.Namespaced[Garden](c, "default").Replace(t.Context(), eden); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if created > 0 || s.object("plants", "default", "rose") != nil {
			t.Errorf("%d more applies of the child of an owner that is gone", created)
		}
		stream.Thaw()
	})
}

// A child that somebody deletes costs one read of its owner. The owner still exists. A child that
// the reconcile deletes itself costs none.
func TestDeletedChildOfALivingOwner(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		var isUnwanted bool
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			rose := kube.OwnedBy(g, plant("rose"))
			if isUnwanted {
				return controller.Done(), kube.IgnoreNotFound(c.Delete(ctx, rose))
			}
			_, err := kube.Apply(ctx, c, rose)
			return controller.Done(), err
		}, controller.Owns[Plant]()))
		synctest.Wait()
		reads := func() int {
			synctest.Wait()
			return s.count(func(r *wire.Request) bool { return r.Verb == wire.VerbGet && r.Resource.Plural == "gardens" })
		}
		before := reads()
		remove(t, c, plant("rose"))
		if n := reads() - before; n != 1 || s.object("plants", "default", "rose") == nil {
			t.Errorf("%d reads of the owner, want one and its child again", n)
		}
		isUnwanted, before = true, reads()
		apply(t, c, &Garden{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eden", Labels: map[string]string{"season": "winter"}}})
		if n := reads() - before; n != 0 || s.object("plants", "default", "rose") != nil {
			t.Errorf("%d reads of the owner, want none and no child", n)
		}
	})
}

// A port of LeaderWorkerSet had to act on Pods that were being deleted, and no function was called for them.
func TestReconcileDeleting(t *testing.T) {
	t.Parallel()
	const foreign = "other.example.com/hold"
	reconcile := func(calls *journal) func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
		return func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.DeletionTimestamp == nil {
				calls.record("reconcile " + g.Name)
				return controller.Done(), nil
			}
			calls.record("reconcile the deleted " + g.Name)
			_, err := kube.Namespaced[Garden](c, g.Namespace).Patch(ctx, g.Name, kube.MergePatch(map[string]any{
				"metadata": map[string]any{"finalizers": nil, "resourceVersion": g.ResourceVersion},
			}))
			return controller.Done(), err
		}
	}
	for name, test := range map[string]struct {
		options []controller.Option
		own     bool
		want    []string
	}{
		"a finalizer of others": {want: []string{"reconcile eden", "reconcile the deleted eden"}},
		"an own finalizer, too": {own: true, want: []string{"reconcile eden", "cleanup eden", "reconcile the deleted eden"}},
		"cancelled deletions": {
			options: []controller.Option{controller.CancelDeleted()}, want: []string{"reconcile eden", "reconcile the deleted eden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				g := garden("eden")
				g.Finalizers = []string{foreign}
				create(t, c, g)
				watcher := controller.New(reconcile(&calls), append(test.options, controller.ReconcileDeleting())...)
				if test.own {
					watcher.Finalizer(finalizer, func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
						calls.record("cleanup " + g.Name)
						return controller.CleanupDone(), nil
					})
				}
				start(t, c, watcher)
				synctest.Wait()
				before, err := kube.Namespaced[Garden](c, "default").Get(t.Context(), "eden")
				if err != nil || slices.Contains(before.Finalizers, finalizer) != test.own {
					t.Errorf("before the deletion: %v, error %v", before, err)
				}
				remove(t, c, g)
				synctest.Wait()
				if got := slices.Compact(calls.drain()); !slices.Equal(got, test.want) {
					t.Errorf("calls: %q, want %q", got, test.want)
				}
				if s.object("gardens", "default", "eden") != nil {
					t.Error("the deleted object still exists")
				}
			})
		})
	}
}
