package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/bound"
	"github.com/yare-go/yare/kube"
)

// An object with the finalizer stops matching the selectors of For. Its cleanup waits for its child, by
// CleanupPending. CleanupPending says: the cleanup is called again after the next change of a watched object that
// concerns the object. With OwnsByLabel nothing calls it again: the object keeps the finalizer for ever, and
// hangs when it is deleted.
func TestProofCleanupOfADeselectedOwnerByLabelIsNotCalledAgain(t *testing.T) {
	bound.SkipFinding(t, 2)
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

// The same for a cleanup that waits for a change of the object itself.
func TestProofCleanupOfADeselectedObjectIsNotCalledAfterAChangeOfTheObject(t *testing.T) {
	bound.SkipFinding(t, 2)
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		g := garden("eden")
		g.Labels = map[string]string{"shard": "1"}
		create(t, c, g)
		reconcile := func(context.Context, *Garden, *kube.Client) (controller.Action, error) { return controller.Done(), nil }
		cleanup := func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
			if g.Annotations["approved"] == "" {
				return controller.CleanupPending(), nil
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
		remove(t, c, garden("eden"))
		time.Sleep(time.Hour)
		if o := s.object("gardens", "default", "eden"); o != nil {
			t.Errorf("the object was deleted, and an hour later it has the finalizers %v", meta(o)["finalizers"])
		}
	})
}

// A second owner by label, in another program with the same field manager (the operator is installed twice).
func TestProofChildByLabelOfAnotherInstallation(t *testing.T) {
	bound.SkipFinding(t, 1)
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

// The reconciled kind is removed with its objects, and the garbage collector deletes their children. The deletion
// of a child puts its owner in doubt, because the watch of the owners does not show their end. The doubt is never
// settled: the read of the owner fails because the kind is gone, and is repeated for ever.
func TestProofDoubtAboutAnObjectOfARemovedKind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{}}
		c := kube.NewClientFromHandler(served)
		eden := create(t, direct, garden("eden"))
		create(t, direct, kube.OwnedBy(eden, plant("rose")))
		var results journal
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.For(controller.IfServed()), controller.Owns[Plant](), controller.OnResult(results.result)))
		time.Sleep(time.Second)
		results.drainResults()
		served.set("gardens", false, nil)
		for f := range s.feeds {
			if f.plural == "gardens" {
				f.end()
			}
		}
		remove(t, direct, plant("rose"))
		time.Sleep(12 * time.Hour)
		failed := 0
		for _, r := range results.drainResults() {
			if r.Err != nil {
				failed++
			}
		}
		if failed > 3 {
			lines := p.log.lines(slog.LevelError)
			t.Errorf("%d failed reconciles in twelve hours of an object whose kind is gone; the last of %d lines of the log: %s", failed, len(lines), lines[len(lines)-1])
		}
	})
}

// A source of a controller cannot be listed, such as for want of a permission, so that the controller does not
// start. Its queue keeps the key of each object that was ever created meanwhile.
func TestProofQueueGrowsWhileASourceIsNotSynced(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		s.mu.Lock()
		s.unsynced["plants"] = true
		s.mu.Unlock()
		caches := cache.New(c)
		ctx, cancel := context.WithCancel(context.Background())
		f := new(queueStats)
		ended := make(chan error, 1)
		part := controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Owns[Plant]())
		go func() {
			ended <- part.Start(ctx, &controller.Runtime{Client: c, Cache: caches, Observer: f, Log: slog.New(slog.DiscardHandler)})
		}()
		synctest.Wait()
		for i := range 2000 {
			create(t, c, garden(fmt.Sprint("g-", i)))
			synctest.Wait()
			remove(t, c, garden(fmt.Sprint("g-", i)))
			synctest.Wait()
		}
		f.mu.Lock()
		got := f.of()
		f.mu.Unlock()
		if got.Ready > 100 {
			t.Errorf("2000 objects were created and deleted, none exists, and %d keys wait in the queue", got.Ready)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		caches.Close()
	})
}
