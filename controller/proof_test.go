package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/bound"
	"github.com/yare-go/yare/kube"
)

// Two owners of one controller want a child of the same name, outside of namespaces, and mark it by label.
// The second owner must be refused with ErrForeignChild, as it is with owner references. Instead each takes
// the child over from the other one, without an end and without a line in the log.
func TestProofTwoOwnersByLabelFight(t *testing.T) {
	bound.SkipFinding(t, 1)
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
			if errors.Is(err, controller.ErrForeignChild) {
				refused.Store(true)
				return controller.Done(), nil
			}
			return controller.Done(), err
		}, controller.OwnsByLabel[Country](ownerLabel)))
		time.Sleep(time.Second)
		writes := s.count(func(r *kube.Request) bool { return r.Verb.IsWrite() && r.Resource.Plural == "countries" })
		if n := calls.Load(); n > 20 {
			t.Errorf("%d reconciles and %d writes of the child within a second: the owners fight", n, writes)
		}
		if !refused.Load() {
			t.Error("no owner was refused: the child of one owner was taken over by the other one")
		}
		t.Logf("errors in the log: %d", len(p.log.lines(slog.LevelError)))
	})
}

// The second owner is deleted. Its cleanup deletes its children, as the comment of OwnsByLabel says, and
// destroys the child of the first owner, which does not reconcile at present.
func TestProofChildByLabelIsDestroyedWithAnotherOwner(t *testing.T) {
	bound.SkipFinding(t, 1)
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		a := create(t, c, garden("a"))
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Spec.Size == 2 { // such as suspended, or waiting for something outside
				return controller.Done(), nil
			}
			_, err := kube.Apply(ctx, c, kube.OwnedByLabel(g, ownerLabel, &Country{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
			if errors.Is(err, controller.ErrForeignChild) {
				return controller.Done(), nil
			}
			return controller.Done(), err
		}
		cleanup := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Cleanup, error) {
			children, err := kube.All[Country](c).List(ctx, kube.Label(ownerLabel, string(g.UID)))
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

// queueStats receives the stats of queues.
type queueStats struct {
	mu sync.Mutex
	of func() controller.QueueStats
}

func (f *queueStats) Queue(_ string, of func() controller.QueueStats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of = of
}

func (f *queueStats) Result(controller.Result) {}

// A replica that does not lead keeps the key of each object ever created while the replica waits, although
// the objects are gone. The queue of a standby grows without an end.
func TestProofQueueOfAStandbyGrows(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		caches := cache.New(c)
		ctx, cancel := context.WithCancel(context.Background())
		f := new(queueStats)
		ended := make(chan error, 1)
		part := controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Owns[Plant]())
		go func() {
			ended <- part.Start(ctx, &controller.Runtime{
				Client: c, Cache: caches, Observer: f, Log: slog.New(slog.DiscardHandler), Elected: make(chan struct{}),
			})
		}()
		synctest.Wait()
		const n = 5000
		for i := range n {
			g := garden(fmt.Sprintf("g-%d", i))
			create(t, c, g)
			synctest.Wait()
			remove(t, c, garden(g.Name))
			synctest.Wait()
		}
		f.mu.Lock()
		got := f.of()
		f.mu.Unlock()
		if got.Ready > 100 {
			t.Errorf("%d objects were created and deleted, none exists, and %d keys wait in the queue of the standby", n, got.Ready)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		caches.Close()
	})
}

// An object of a kind that need not be served, selected by a label and with a finalizer. The kind is removed
// with its objects. Its former objects are retried for ever, and logged as errors.
func TestProofGoneKindWithSelectorIsRetriedForever(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{}}
		c := kube.NewClientFromHandler(served)
		g := garden("eden")
		g.Labels = map[string]string{"shard": "1"}
		create(t, direct, g)
		var results journal
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.For(controller.IfServed(), controller.Select(kube.Label("shard", "1"))), controller.OnResult(results.result)).
			Finalizer(finalizer, func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
				return controller.CleanupDone(), nil
			}))
		time.Sleep(time.Second)
		results.drainResults()
		served.set("gardens", false, nil)
		served.set("plants", false, nil)
		for f := range s.feeds {
			if f.plural == "gardens" {
				f.end()
			}
		}
		time.Sleep(2 * time.Hour)
		failed := 0
		for _, r := range results.drainResults() {
			if r.Err != nil {
				failed++
			}
		}
		if failed > 0 {
			t.Errorf("%d failed reconciles in two hours of an object whose kind is gone; log: %q", failed, p.log.lines(slog.LevelError))
		}
	})
}
