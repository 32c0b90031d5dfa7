package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 11: whatever path leads to an object, the object is reconciled by one worker at a
// time. All changes meanwhile lead to one call more, which sees all of them.
func TestOneWorkerPerObjectByWhateverPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var running, most atomic.Int32
		var calls journal
		names := make(chan kube.Key)
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Minute)
			p, err := kube.Get[Plant](ctx, c, "default", "rose")
			if err != nil {
				return controller.Done(), err
			}
			calls.record(fmt.Sprintf("garden %d, rose %d", g.Spec.Size, p.Spec.Height))
			return controller.RequeueAfter(time.Hour), nil
		}
		c := s.client()
		g := create(t, c, garden("eden"))
		create(t, c, kube.OwnedBy(g, plant("rose")))
		start(t, c, controller.New(reconcile,
			controller.Owns[Plant](),
			watches(func(m *corev1.ConfigMap) []kube.Key {
				return []kube.Key{{Namespace: m.Namespace, Name: m.Data["garden"]}}
			}),
			controller.Channel(names),
			controller.Every(7*time.Minute),
			controller.ShutdownGrace(5*time.Minute), // a call may be under way at the end
		))
		time.Sleep(10 * time.Second) // the first call is under way
		change := garden("eden")
		change.Spec.Size = 2
		apply(t, c, change)
		child := kube.OwnedBy(g, plant("rose"))
		child.Spec.Height = 2
		apply(t, c, child)
		create(t, c, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "config"}, Data: map[string]string{"garden": "eden"},
		})
		names <- kube.Key{Namespace: "default", Name: "eden"}
		time.Sleep(4 * time.Minute)
		if diff := cmp.Diff([]string{"garden 1, rose 2", "garden 2, rose 2"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		time.Sleep(3 * time.Hour) // by the interval and by the requeue
		if len(calls.drain()) < 20 {
			t.Error("the timer did not trigger")
		}
		if most.Load() != 1 {
			t.Errorf("%d workers had the object at once", most.Load())
		}
	})
}

// Promise 11: an owner outside of namespaces is one object, however many namespaces its children are in.
func TestClusterScopedOwnerOfNamespacedChildren(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var running, most atomic.Int32
		var calls journal
		reconcile := func(_ context.Context, o *Country, _ *kube.Client) (controller.Action, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Minute)
			calls.record(o.Name)
			return controller.Done(), nil
		}
		c := s.client()
		owner := create(t, c, &Country{ObjectMeta: metav1.ObjectMeta{Name: "peru"}})
		start(t, c, controller.New(reconcile, controller.Owns[Garden](), watches(func(p *Plant) []kube.Key {
			return []kube.Key{{Namespace: p.Namespace, Name: "peru"}} // a namespace that does not count
		})))
		time.Sleep(2 * time.Minute)
		for i := range 5 {
			g := garden("lima")
			g.Namespace = fmt.Sprint("n", i)
			create(t, c, kube.OwnedBy(owner, g))
			synctest.Wait() // the first is the reason of a call, before the others come
		}
		create(t, c, plant("potato"))
		time.Sleep(10 * time.Minute)
		// At the start, and for the first child, and for all others.
		if diff := cmp.Diff([]string{"peru", "peru", "peru"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if most.Load() != 1 {
			t.Errorf("%d workers had the object at once", most.Load())
		}
	})
}

// Promise 11: nothing starts before every source is synced, and then eight objects at once.
func TestStartAfterSyncAndInParallel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		s.unsynced["plants"] = true
		var running, most atomic.Int32
		var sources atomic.Int32
		c := s.client()
		for i := range 20 {
			create(t, c, garden(fmt.Sprint("g", i)))
		}
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second)
			return controller.Done(), nil
		}, controller.Owns[Plant](), controller.From(func(context.Context, func(controller.Trigger)) error {
			sources.Add(1)
			return nil
		})))
		time.Sleep(20 * time.Second)
		if most.Load() != 0 || sources.Load() != 0 {
			t.Fatal("a reconcile or a source began before all was synced")
		}
		s.sync("plants")
		time.Sleep(20 * time.Second)
		if most.Load() != 8 || sources.Load() != 1 {
			t.Errorf("%d at once, want 8; %d sources, want 1", most.Load(), sources.Load())
		}
	})
}

// Promise 11: a namespace that the server forbids holds up no other namespace. Its objects are reconciled once it can be listed.
// After a restart, a program of two namespaces did nothing anywhere, because one of them had been deleted with its Role.
func TestForbiddenNamespaceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		var forbidden atomic.Value
		forbidden.Store("")
		s.before = func(r *wire.Request) error {
			if strings.Contains(forbidden.Load().(string), r.Namespace+"/"+r.Resource.Plural) {
				return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden)
			}
			return nil
		}
		c := s.client()
		lost := garden("lost")
		lost.Namespace = "gone"
		create(t, c, lost)
		create(t, c, garden("eden"))
		forbidden.Store("gone/gardens gone/plants default/plants")
		program := start(t, c.InNamespaces("default", "gone"), controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			return controller.Done(), nil
		}, controller.Owns[Plant]()))
		time.Sleep(time.Hour)
		if lines := calls.drain(); len(lines) > 0 {
			t.Errorf("the controller has no permission for plants in any namespace, and has reconciled %v", lines)
		}
		forbidden.Store("gone/gardens gone/plants")
		time.Sleep(time.Minute)
		if lines := calls.drain(); !slices.Equal(lines, []string{"eden"}) {
			t.Errorf("with the permissions for one namespace, the controller has reconciled %v", lines)
		}
		forbidden.Store("")
		time.Sleep(time.Minute)
		if lines := calls.drain(); !slices.Equal(lines, []string{"lost"}) {
			t.Errorf("with the permissions for both namespaces, the controller has reconciled %v", lines)
		}
		for _, each := range program.caches.Stats() {
			if !each.Synced || each.Unlisted {
				t.Errorf("%s is not synced", each.Stream)
			}
		}
	})
}

// A list that fails in one namespace for another reason, such as a conversion, holds up the other namespaces for a minute.
func TestFailingNamespaceHoldsUpOthersForAMinute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		s.before = func(r *wire.Request) error {
			if r.Namespace == "broken" {
				return refuse(r, http.StatusInternalServerError, metav1.StatusReasonInternalError)
			}
			return nil
		}
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c.InNamespaces("broken", "default"), controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			return controller.Done(), nil
		}))
		time.Sleep(50 * time.Second)
		if lines := calls.drain(); len(lines) > 0 {
			t.Errorf("before a minute the controller has reconciled %v", lines)
		}
		time.Sleep(time.Minute)
		if lines := calls.drain(); !slices.Equal(lines, []string{"eden"}) {
			t.Errorf("after a minute the controller has reconciled %v", lines)
		}
	})
}

// Promise 12: the earliest of several times counts, and a time that is over is due.
func TestEarliestWins(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		begin := time.Now()
		var calls journal
		next := []time.Duration{time.Hour, time.Hour, -time.Minute, 0}
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			calls.record(time.Since(begin).String())
			if len(next) == 0 {
				return controller.Done(), nil
			}
			d := next[0]
			next = next[1:]
			return controller.RequeueAfter(d), nil
		}, controller.Concurrency(1)))
		time.Sleep(10 * time.Minute)
		change := garden("eden")
		change.Spec.Size = 2
		apply(t, c, change)
		time.Sleep(10 * time.Hour)
		want := []string{"0s", "10m0s", "1h10m0s", "1h10m1s", "1h10m2s"}
		if diff := cmp.Diff(want, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Promise 12: each object backs off by itself; a success resets it; the policy sees the
// object, the error and the attempt; conflicts neither ask it nor count, nor does a failure within
// a wait count; an own write that comes back does not shorten a wait, and anything else does.
func TestBackoff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var asked, calls journal
		broken := errors.New("broken")
		outcomes := []error{broken, &wire.Error{Code: 409, Answer: metav1.Status{Reason: metav1.StatusReasonConflict}}, broken, broken, nil, broken}
		c := s.client()
		create(t, c, garden("good"))
		create(t, c, garden("bad"))
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			if g.Name == "good" {
				return controller.Done(), nil
			}
			if len(outcomes) == 0 {
				return controller.Done(), nil
			}
			g.Status.Size = 10 - len(outcomes) // a write before the failure
			if err := c.ApplyStatus(ctx, g); err != nil {
				return controller.Done(), err
			}
			err := outcomes[0]
			outcomes = outcomes[1:]
			return controller.Done(), err
		}
		policy := func(g *Garden, err error, attempt int) time.Duration {
			asked.record(fmt.Sprint(g.Name, " ", err, " ", attempt))
			return time.Duration(attempt) * time.Hour
		}
		start(t, c, controller.New(reconcile, controller.Concurrency(1)).Backoff(policy))
		synctest.Wait()
		if diff := cmp.Diff([]string{"bad", "good"}, calls.drain()); diff != "" {
			t.Fatalf("calls at the start (-want +got):\n%s", diff)
		}
		time.Sleep(59 * time.Minute)
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("called again within the wait: %q", got)
		}
		time.Sleep(8 * time.Minute) // at most a tenth more; the conflict and, at once, the second failure
		if diff := cmp.Diff([]string{"bad", "bad"}, calls.drain()); diff != "" {
			t.Errorf("calls after the first wait (-want +got):\n%s", diff)
		}
		change := garden("bad")
		change.Spec.Size = 7
		apply(t, c, change) // by somebody else: it ends the wait of two hours
		synctest.Wait()
		if diff := cmp.Diff([]string{"bad"}, calls.drain()); diff != "" {
			t.Errorf("calls after a change (-want +got):\n%s", diff)
		}
		time.Sleep(100 * time.Hour)
		want := []string{"bad broken 1", "bad broken 2", "bad broken 2", "bad broken 1"}
		if diff := cmp.Diff(want, asked.drain()); diff != "" {
			t.Errorf("the policy was asked (-want +got):\n%s", diff)
		}
	})
}

// What another controller of the program writes is no echo: it may be just what an object
// that backs off is waiting for.
func TestWritesOfAnotherControllerEndAWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		begin := time.Now()
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		waits := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			if g.Status.Size == 0 {
				return controller.Done(), errors.New("not measured yet")
			}
			calls.record(time.Since(begin).String())
			return controller.Done(), nil
		}, controller.Name("waits")).Backoff(func(*Garden, error, int) time.Duration { return time.Hour })
		measures := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			time.Sleep(time.Minute)
			g.Status.Size = g.Spec.Size
			return controller.Done(), c.ApplyStatus(ctx, g)
		}, controller.Name("measures"))
		start(t, c, waits, measures)
		time.Sleep(3 * time.Hour)
		if diff := cmp.Diff([]string{"1m0s"}, calls.drain()); diff != "" {
			t.Errorf("the object was reconciled (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"gardens"}, s.watches()); diff != "" {
			t.Errorf("watches of two controllers (-want +got):\n%s", diff)
		}
	})
}

// Promise 13: what is fresh, and what is being deleted, overtakes the many objects of the start, which keep
// their share.
func TestFreshOvertakesTheFlood(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		for i := range 50 {
			g := garden(fmt.Sprintf("flood-%02d", i))
			if i == 40 {
				g.Finalizers = []string{"test.example.com/cleanup"}
			}
			create(t, c, g)
		}
		remove(t, c, garden("flood-40"))
		note := func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			time.Sleep(time.Second)
			return controller.Done(), nil
		}
		start(t, c, controller.New(note, controller.Concurrency(1)).Finalizer("test.example.com/cleanup", cleaning(note)))
		time.Sleep(3500 * time.Millisecond)
		first := calls.drain()
		if !slices.Contains(first, "flood-40") {
			t.Errorf("the deletion has not overtaken: %q", first)
		}
		for i := range 10 {
			create(t, c, garden(fmt.Sprint("fresh-", i)))
		}
		time.Sleep(12 * time.Second)
		fresh, flood := 0, 0
		for _, name := range calls.drain() {
			if strings.HasPrefix(name, "fresh") {
				fresh++
			} else {
				flood++
			}
		}
		if fresh < 9 || flood < 2 {
			t.Errorf("%d fresh and %d of the flood in 12 s, want at least 9 and 2", fresh, flood)
		}
	})
}

// Promise 12: an own write is an echo also if the stream shows it before it is answered;
// what somebody else does meanwhile is no echo.
func TestEchoBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile bool
		want      []string
	}{
		"own write alone":     {false, []string{"0s", "1h0m0s"}},
		"and another manager": {true, []string{"0s", "0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				begin := time.Now()
				var calls journal
				c := s.client()
				create(t, c, garden("eden"))
				slow := c.With(func(next wire.Handler) wire.Handler {
					return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
						response, err := next.Do(ctx, r)
						if r.Verb.IsWrite() {
							time.Sleep(time.Minute)
						}
						return response, err
					})
				})
				var called atomic.Bool
				start(t, slow, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
					calls.record(time.Since(begin).Truncate(time.Hour).String())
					if called.Swap(true) {
						return controller.Done(), nil
					}
					g.Status.Size = 1
					return controller.Done(), errors.Join(c.ApplyStatus(ctx, g), errors.New("broken"))
				}).Backoff(func(*Garden, error, int) time.Duration { return time.Hour }))
				time.Sleep(30 * time.Second)
				if test.meanwhile {
					change := garden("eden")
					change.Spec.Size = 2
					apply(t, c, change)
				}
				time.Sleep(2 * time.Hour)
				if diff := cmp.Diff(test.want, calls.drain()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}
