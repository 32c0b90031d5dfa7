package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

func hourlyBackoff(*Garden, error, int) time.Duration { return time.Hour }

// An object that backs off waited for what another object of the same controller wrote. The write was taken
// for an echo, and the object waited for its whole back-off.
func TestWriteOfAnotherObjectEndsTheBackoff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("maker"))
		create(t, c, garden("taker"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Name == "maker" {
				if g.Spec.Size < 2 {
					return controller.Done(), nil
				}
				_, err := kube.Apply(ctx, c, plant("shared"))
				return controller.Done(), err
			}
			_, err := kube.Get[Plant](ctx, c, "default", "shared")
			calls.record(fmt.Sprint(err == nil))
			return controller.Done(), err
		}, watches(takerOfPlants)).Backoff(hourlyBackoff))
		time.Sleep(time.Minute)
		maker := garden("maker")
		maker.Spec.Size = 2
		apply(t, c, maker)
		time.Sleep(5 * time.Second)
		if got := calls.drain(); !slices.Equal(got, []string{"false", "true"}) {
			t.Errorf("the waiting object found its plant: %v, want at the second call", got)
		}
	})
}

// An object in back-off waited for its own spec, which another object of the same controller wrote.
func TestSpecWrittenByASiblingEndsTheBackoff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("maker"))
		create(t, c, garden("taker"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Name == "maker" {
				if g.Spec.Size < 2 {
					return controller.Done(), nil
				}
				sized := garden("taker")
				sized.Spec.Size = 7
				_, err := kube.Apply(ctx, c, sized)
				return controller.Done(), err
			}
			calls.record(fmt.Sprint(g.Spec.Size))
			if g.Spec.Size != 7 {
				return controller.Done(), errors.New("not sized")
			}
			return controller.Done(), nil
		}).Backoff(hourlyBackoff))
		time.Sleep(time.Minute)
		maker := garden("maker")
		maker.Spec.Size = 2
		apply(t, c, maker)
		time.Sleep(5 * time.Second)
		if got := calls.drain(); !slices.Equal(got, []string{"1", "7"}) {
			t.Errorf("sizes that the waiting object saw: %v", got)
		}
	})
}

// A write without a change is answered with the version that a user's change has made. The user's
// change was taken for an echo.
func TestAnswerOfAWriteThatChangesNothingIsNoEcho(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, kube.OwnedBy(create(t, c, garden("eden")), plant("rose")))
		var edited atomic.Bool
		s.before = func(r *wire.Request) error {
			// The user's change arrives just before the reconcile's patch.
			if r.Verb == wire.VerbPatch && r.ContentType == wire.ContentJSONPatch && edited.CompareAndSwap(false, true) {
				_, err := kube.Namespaced[Plant](s.client(), "default").Patch(context.Background(), "rose",
					kube.MergePatch(map[string]any{"spec": map[string]any{"height": 9}}))
				return err
			}
			return nil
		}
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			p, err := kube.Get[Plant](ctx, c, "default", "rose")
			if err != nil {
				return controller.Done(), err
			}
			// The patch changes nothing.
			if _, err := kube.Namespaced[Plant](c, "default").Patch(ctx, "rose", kube.JSONPatch(kube.TestAt("/metadata/name", "rose"))); err != nil {
				return controller.Done(), err
			}
			calls.record(fmt.Sprint(p.Spec.Height))
			if p.Spec.Height < 9 {
				return controller.Done(), errors.New("too small")
			}
			return controller.Done(), nil
		}, controller.Owns[Plant]()).Backoff(hourlyBackoff))
		time.Sleep(time.Minute)
		if got := calls.drain(); len(got) == 0 || got[len(got)-1] != "9" {
			t.Errorf("heights that the reconciles saw: %v, want 9 at last", got)
		}
	})
}

// A user's change was shown before a reconcile wrote the same object without changing it, and the map
// function returned after the reconcile. The change was taken for what the reconcile might have
// written, and waited for the back-off.
func TestChangeShownBeforeAWriteIsNoEcho(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, plant("rose"))
		mayReturn := make(chan struct{})
		release := sync.OnceFunc(func() { close(mayReturn) })
		defer release()
		keys := func(p *Plant) []kube.Key {
			if p.Name != "rose" {
				return nil
			}
			if p.Spec.Height == 9 {
				<-mayReturn
			}
			return []kube.Key{{Namespace: "default", Name: "eden"}}
		}
		var calls atomic.Int32
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			// A change of the lily may be the reconcile's own. The first such change ends the back-off,
			// and further ones do not.
			lily := plant("lily")
			lily.Spec.Height = int(calls.Add(1))
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, lily)); err != nil {
				return controller.Done(), err
			}
			_, err := kube.Namespaced[Plant](c, "default").Patch(ctx, "rose", kube.JSONPatch(kube.TestAt("/metadata/name", "rose")))
			return controller.Done(), errors.Join(err, errors.New("not yet"))
		}, controller.Owns[Plant](), watches(keys)).Backoff(hourlyBackoff))
		time.Sleep(time.Minute)
		edit := kube.MergePatch(map[string]any{"spec": map[string]any{"height": 9}})
		if _, err := kube.Namespaced[Plant](c, "default").Patch(t.Context(), "rose", edit); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		before := calls.Load()
		label := kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"season": "winter"}}})
		if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "eden", label); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if calls.Load() == before {
			t.Fatal("no call after the change of the garden")
		}
		before = calls.Load()
		release()
		time.Sleep(time.Minute)
		if calls.Load() == before {
			t.Error("no call after the user's change of the rose")
		}
	})
}

// A reconcile that writes something new each time before it fails is not its own reason to be
// retried: a doubtful echo ends one back-off at most.
func TestOwnWritesDoNotHastenTheRetry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls atomic.Int32
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			p := plant("rose")
			p.Spec.Height = int(calls.Add(1))
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, p)); err != nil {
				return controller.Done(), err
			}
			return controller.Done(), errors.New("not yet")
		}, controller.Owns[Plant]()).Backoff(hourlyBackoff))
		time.Sleep(30 * time.Minute)
		if n := calls.Load(); n > 2 {
			t.Errorf("%d calls in half an hour with a back-off of an hour, want 2 at most", n)
		}
	})
}

// A trigger for later was lost when another reconcile came first.
func TestTriggerForLaterIsKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		began := time.Now()
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			calls.record(time.Since(began).Round(time.Minute).String())
			return controller.Done(), nil
		}, controller.From(certificateExpiry(began.Add(time.Hour)))))
		time.Sleep(30 * time.Minute)
		eden := garden("eden")
		eden.Spec.Size = 2
		apply(t, c, eden)
		time.Sleep(24 * time.Hour)
		if got := strings.Join(calls.drain(), " "); got != "0s 30m0s 1h0m0s" {
			t.Errorf("calls at %s", got)
		}
	})
}

// Due requeues, and a resync, were as urgent as a new object. The new object waited behind a thousand
// of them.
func TestNewObjectOvertakesDueRequeues(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		hour := time.Now().Add(time.Hour)
		var waited time.Duration
		c := s.client()
		for i := range 300 {
			create(t, c, garden(fmt.Sprint("g", i)))
		}
		start(t, c, controller.New(func(ctx context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			if g.Name == "fresh" && waited == 0 {
				waited = time.Since(hour)
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			if time.Now().Before(hour) {
				return controller.RequeueAfter(time.Until(hour)), nil // every full hour
			}
			return controller.Done(), nil
		}, controller.Concurrency(1), controller.ShutdownGrace(0)))
		time.Sleep(time.Until(hour.Add(time.Second)))
		create(t, c, garden("fresh"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if waited > 5*time.Second {
			t.Errorf("a new object waited %s", waited)
		}
	})
}

// A resync ended every back-off.
func TestResyncKeepsTheBackoff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls atomic.Int32
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			calls.Add(1)
			return controller.Done(), errors.New("no")
		}, controller.Every(10*time.Second)).Backoff(hourlyBackoff))
		time.Sleep(50 * time.Minute)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls in less than an hour, with a back-off of an hour", n)
		}
	})
}

// A write of unknown outcome explained every later change of its object: a user's edit was taken for an echo
// of the write, and the object waited for its whole back-off.
func TestWriteOfUnknownOutcomeExplainsOneChange(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		var lost atomic.Bool
		s.After(func(_ context.Context, r *wire.Request) error {
			if r.Verb == wire.VerbPatch && r.Subresource == "status" && lost.CompareAndSwap(false, true) {
				return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
			}
			return nil
		})
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record(fmt.Sprint(g.Spec.Size))
			if g.Spec.Size < 7 {
				g.Status.Size = 3
				return controller.Done(), errors.Join(c.ApplyStatus(ctx, g), errors.New("too small"))
			}
			return controller.Done(), nil
		}).Backoff(hourlyBackoff))
		time.Sleep(time.Minute)
		if !lost.Load() {
			t.Fatal("no write had an unknown outcome")
		}
		edited := garden("eden")
		edited.Spec.Size = 7
		apply(t, c, edited)
		time.Sleep(5 * time.Second)
		if got := calls.drain(); got[len(got)-1] != "7" {
			t.Errorf("sizes that the reconciles saw: %v, want 7 at last", got)
		}
	})
}

// Regression: the beginning of a deletion was taken for the echo of a status of unknown outcome, and
// the cleanup waited for the end of the back-off (seed 3045055 of the model of a program).
func TestDeletionIsNoEchoOfAStatus(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		unknown := func(r *wire.Request) error {
			return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
		}
		s.before = func(r *wire.Request) error { // the status is not written
			if r.Subresource == "status" {
				return unknown(r)
			}
			return nil
		}
		s.After(func(_ context.Context, r *wire.Request) error { // the plant is
			if r.Verb == wire.VerbPatch && r.Resource.Plural == "plants" {
				return unknown(r)
			}
			return nil
		})
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			g.Status.Size = 3
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose")))
			return controller.Done(), errors.Join(err, c.ApplyStatus(ctx, g))
		}, controller.Owns[Plant]()).Backoff(hourlyBackoff).Finalizer(finalizer, func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
			calls.record("cleanup")
			return controller.CleanupDone(), nil
		}))
		time.Sleep(time.Minute)
		remove(t, c, garden("eden"))
		time.Sleep(5 * time.Second)
		if got := calls.drain(); !slices.Equal(got, []string{"cleanup"}) {
			t.Errorf("calls after the deletion: %v, want one cleanup", got)
		}
	})
}

// A deleted child is no echo of a status that the reconcile may have written to the child, so that the
// child comes back at once.
func TestDeletedChildIsNoEchoOfItsStatus(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		s.before = func(r *wire.Request) error { // no status is written
			if r.Subresource == "status" {
				return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
			}
			return nil
		}
		var calls atomic.Int32
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			// A change of the lily may be the reconcile's own. The first such change ends the back-off,
			// and further ones do not.
			lily := kube.OwnedBy(g, plant("lily"))
			lily.Spec.Height = int(calls.Add(1))
			_, err := kube.Apply(ctx, c, lily)
			rose, err2 := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose")))
			if err := errors.Join(err, err2); err != nil {
				return controller.Done(), err
			}
			rose.Status.Height = 3
			return controller.Done(), c.ApplyStatus(ctx, rose)
		}, controller.Owns[Plant]()).Backoff(hourlyBackoff))
		time.Sleep(time.Minute)
		apply(t, c, &Garden{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eden", Labels: map[string]string{"season": "winter"}}})
		time.Sleep(time.Second)
		remove(t, c, plant("rose"))
		time.Sleep(time.Minute)
		if s.object("plants", "default", "rose") == nil {
			t.Error("the deleted child has not come back")
		}
	})
}

// Regression: a reconcile saw, by the answer of its own write, a label that its stream had missed.
// The label was changed back before the stream was listed anew. The predicate saw no difference, so
// the last reconcile was one of a state that was no more (seed 3100761 of the model of a program).
func TestPredicatesDoNotDecideOverMissedStates(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		setLabel := func(value string) {
			t.Helper()
			patch := kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": value}}})
			if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "eden", patch); err != nil {
				t.Fatal(err)
			}
		}
		touch := func(size int) {
			t.Helper()
			patch := kube.MergePatch(map[string]any{"spec": map[string]any{"size": size}})
			if _, err := kube.Namespaced[Plant](c, "default").Patch(t.Context(), "rose", patch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		create(t, c, garden("eden"))
		setLabel("one")
		create(t, c, plant("rose"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record(g.Labels["tier"])
			g.Status.Size++
			return controller.Done(), c.ApplyStatus(ctx, g)
		}, controller.Reconciled(controller.When(controller.LabelsChanged)), watches(func(*Plant) []kube.Key {
			return []kube.Key{{Namespace: "default", Name: "eden"}}
		})))
		time.Sleep(time.Second)
		stream := s.Stream(fakeserver.StreamID{Plural: "gardens"})
		stream.Refuse(http.StatusServiceUnavailable, "")
		stream.Cut()
		setLabel("two")
		touch(1)
		touch(2)
		if got := calls.drain(); got[len(got)-1] != "two" {
			t.Fatalf("labels that the reconciles saw: %v, want two at last", got)
		}
		setLabel("one")
		s.Compact()
		stream.Allow()
		time.Sleep(time.Minute)
		if got := calls.drain(); len(got) == 0 || got[len(got)-1] != "one" {
			t.Errorf("labels that the reconciles saw after the list: %v, want one at last", got)
		}
	})
}

// takerOfPlants maps every Plant to the Garden taker.
func takerOfPlants(*Plant) []kube.Key { return []kube.Key{{Namespace: "default", Name: "taker"}} }

// certificateExpiry emits one trigger for the Garden eden, a minute after the start, for a later
// time.
func certificateExpiry(at time.Time) func(context.Context, func(controller.Trigger)) error {
	return func(_ context.Context, emit func(controller.Trigger)) error {
		time.Sleep(time.Minute)
		emit(controller.Trigger{Key: kube.Key{Namespace: "default", Name: "eden"}, NotBefore: at, Cause: "expiry"})
		return nil
	}
}
