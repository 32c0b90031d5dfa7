package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Bomb is a kind whose decoding panics for one size.
type Bomb = kube.CustomResource[BombSpec, kube.None]

type BombSpec struct {
	Size Fuse `json:"size"`
}

type Fuse int

func (f *Fuse) UnmarshalJSON(b []byte) error {
	var n int
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	if n == 13 {
		panic("boom")
	}
	*f = Fuse(n)
	return nil
}

func (BombSpec) Definition() kube.Definition {
	return kube.Definition{Group: "test.example.com", Version: "v1", Kind: "Bomb"}
}

func doNothing[T any](context.Context, *T, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// cleaning returns a cleanup that calls f, and is finished if f returns no error.
func cleaning[T any](f func(context.Context, *T, *kube.Client) (controller.Action, error)) func(context.Context, *T, *kube.Client) (controller.Cleanup, error) {
	return func(ctx context.Context, t *T, c *kube.Client) (controller.Cleanup, error) {
		_, err := f(ctx, t, c)
		return controller.CleanupDone(), err
	}
}

// warnings returns the lines of the log that a user sees without -v.
func (p *program) warnings() string {
	return strings.Join(append(p.log.lines(slog.LevelWarn), p.log.lines(slog.LevelError)...), "")
}

// The answer of a finalizer patch was decoded outside of any guard, so that a panic in a type's
// UnmarshalJSON ended the program.
func TestPanicWhileFinalizerIsAdded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, &Bomb{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}, Spec: BombSpec{Size: 1}})
		var edited atomic.Bool
		s.before = func(r *wire.Request) error {
			// Somebody edits the spec between the controller's read and its patch.
			if r.Verb == wire.VerbPatch && r.ContentType == wire.ContentJSONPatch && edited.CompareAndSwap(false, true) {
				_, err := kube.Dynamic(s.client(), r.Resource, "default").Patch(context.Background(), "b",
					kube.MergePatch(map[string]any{"spec": map[string]any{"size": 13}}))
				return err
			}
			return nil
		}
		p := start(t, c, controller.New(doNothing[Bomb]).Finalizer("x.example.com/y", cleaning(doNothing[Bomb])))
		time.Sleep(time.Minute)
		if !strings.Contains(p.warnings(), "panicked: boom") {
			t.Errorf("the log has no panic: %q", p.warnings())
		}
	})
}

// runtime.Goexit in a reconcile, as t.FailNow calls it, took the worker, and the object was never
// reconciled again.
func TestGoexit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls atomic.Int32
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			if calls.Add(1) == 1 {
				runtime.Goexit()
			}
			return controller.Done(), nil
		}, controller.Concurrency(1)))
		time.Sleep(time.Minute)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls after a minute, want the failed one and its retry", n)
		}
		if !strings.Contains(p.warnings(), "runtime.Goexit") {
			t.Errorf("the log does not say so: %q", p.warnings())
		}
		eden := garden("eden")
		eden.Spec.Size = 2
		apply(t, c, eden)
		synctest.Wait()
		if n := calls.Load(); n != 3 {
			t.Errorf("%d calls after a change, want 3", n)
		}
	})
}

// A function for results that calls runtime.Goexit took the worker and the object as well.
func TestGoexitInOnResult(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls atomic.Int32
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(doNothing[Garden], controller.Concurrency(1), controller.OnResult(func(controller.Result) {
			if calls.Add(1) == 1 {
				runtime.Goexit()
			}
		})))
		time.Sleep(time.Minute)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d results after a minute, want 2", n)
		}
	})
}

// Eight reconciles that never return stopped a controller, and nothing was logged.
func TestHungReconcilesAreLogged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		for i := range 9 {
			create(t, c, garden(string(rune('a'+i))))
		}
		p := start(t, c, controller.New(func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Action, error) {
			<-ctx.Done()
			return controller.Done(), nil
		}, controller.ShutdownGrace(0)))
		time.Sleep(4 * time.Minute)
		if text := p.warnings(); text != "" {
			t.Errorf("logged after four minutes: %s", text)
		}
		time.Sleep(2 * time.Minute)
		if n := strings.Count(p.warnings(), "does not return"); n != 8 {
			t.Errorf("%d calls are in the log, want 8: %s", n, p.warnings())
		}
		time.Sleep(24 * time.Hour)
		if n := strings.Count(p.warnings(), "does not return"); n > 8*12 {
			t.Errorf("a day later the log has %d lines", n)
		}
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("patient"))
		create(t, c, garden("deaf"))
		leave := make(chan struct{})
		var results journal
		var deaf, atOnce atomic.Int32
		p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Name == "patient" {
				<-ctx.Done()
				return controller.Done(), ctx.Err()
			}
			if atOnce.Add(1) > 1 {
				t.Error("an object has two workers")
			}
			defer atOnce.Add(-1)
			if deaf.Add(1) == 1 {
				<-leave // without its context
				// The call's time is over, so that it can write no more.
				if _, err := kube.Apply(context.Background(), c, plant("late")); err == nil {
					t.Error("a call wrote after its timeout")
				}
			}
			return controller.Done(), nil
		}, controller.Timeout(10*time.Second), controller.OnResult(results.result)))
		time.Sleep(15 * time.Second)
		got := results.drainResults()
		if len(got) != 1 || got[0].Object.Name != "patient" || !errors.Is(got[0].Err, context.DeadlineExceeded) ||
			!strings.Contains(got[0].Err.Error(), "10s") {
			t.Errorf("results: %+v", got)
		}
		g := garden("deaf")
		g.Spec.Size = 2
		apply(t, c, g)
		time.Sleep(2 * time.Minute)
		if !strings.Contains(p.warnings(), "ignores that its context has ended") {
			t.Errorf("the log does not name the call that ignores its context: %s", p.warnings())
		}
		close(leave)
		synctest.Wait()
		if n := deaf.Load(); n != 2 {
			t.Errorf("%d calls for the object that changed meanwhile, want 2", n)
		}
	})
}

// Regression: conflicts are retried quietly, and conflicts that never ended were never logged.
func TestLastingConflictsAreLogged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), &wire.Error{Code: http.StatusConflict, Answer: metav1.Status{Reason: metav1.StatusReasonConflict, Message: "stuck"}}
		}))
		time.Sleep(50 * time.Second)
		if text := p.warnings(); text != "" {
			t.Errorf("logged before a minute has passed: %s", text)
		}
		time.Sleep(24 * time.Hour)
		if n := strings.Count(p.warnings(), "stuck"); n < 5 || n > 15 {
			t.Errorf("%d lines in a day, want a few: %s", n, p.warnings())
		}
	})
}

// A child of an earlier parent, which a finalizer of others holds, silently kept its parent of
// the same name from being reconciled.
func TestChildThatCannotGoIsLogged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		old := create(t, c, garden("eden"))
		child := kube.OwnedBy(old, plant("rose"))
		child.Finalizers = []string{"storage.example.com/protect"}
		create(t, c, child)
		remove(t, c, old)
		create(t, c, garden("eden"))
		remove(t, c, plant("rose")) // as the garbage collector does
		p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose")))
			return controller.Done(), err
		}, controller.Owns[Plant]()))
		time.Sleep(time.Hour)
		if !strings.Contains(p.warnings(), "default/rose") {
			t.Errorf("after an hour the log does not name the child: %q", p.warnings())
		}
	})
}

// Objects with the finalizer of an earlier version of the program could never be deleted.
func TestRetiredFinalizers(t *testing.T) {
	t.Parallel()
	const former = "x.example.com/y"
	t.Run("are removed", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *server) {
			c := s.client()
			kept, gone := garden("kept"), garden("gone")
			kept.Finalizers, gone.Finalizers = []string{former, "other.example.com/z"}, []string{former}
			create(t, c, kept)
			remove(t, c, create(t, c, gone))
			var reconciled journal
			start(t, c, controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
				reconciled.record(g.Name)
				return controller.Done(), nil
			}).RetiredFinalizers(former))
			time.Sleep(time.Minute)
			if s.object("gardens", "default", "gone") != nil {
				t.Error("the object that was deleted before the start is still there")
			}
			live, err := kube.Get[Garden](t.Context(), c, "default", "kept")
			if err != nil || len(live.Finalizers) != 1 || live.Finalizers[0] != "other.example.com/z" {
				t.Errorf("finalizers of the other object: %v, %v", live.Finalizers, err)
			}
			if got := strings.Join(reconciled.drain(), " "); !strings.Contains(got, "kept") || strings.Contains(got, "gone") {
				t.Errorf("reconciled: %s", got)
			}
		})
	})
	// Regression: the default policy decided when a removal that the server had refused was tried again.
	t.Run("leave the back-off to its policy", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *server) {
			c := s.client()
			g := garden("gone")
			g.Finalizers = []string{former}
			remove(t, c, create(t, c, g))
			s.before = func(r *wire.Request) error {
				if r.ContentType == wire.ContentJSONPatch {
					return refuse(r, http.StatusUnprocessableEntity, "Invalid", "spec.size")
				}
				return nil
			}
			var asked journal
			start(t, c, controller.New(doNothing[Garden]).RetiredFinalizers(former).Backoff(func(g *Garden, _ error, _ int) time.Duration {
				asked.record(g.Name)
				return time.Hour
			}))
			time.Sleep(time.Minute)
			if diff := cmp.Diff([]string{"gone"}, asked.drain()); diff != "" {
				t.Errorf("the policy was asked (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("are logged when nobody names them", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *server) {
			c := s.client()
			g := garden("eden")
			g.Finalizers = []string{former}
			create(t, c, g)
			p := start(t, c, controller.New(doNothing[Garden]))
			time.Sleep(time.Minute)
			remove(t, c, garden("eden"))
			time.Sleep(24 * time.Hour)
			if n := strings.Count(p.warnings(), former); n != 1 {
				t.Errorf("%d lines name the finalizer, want 1: %s", n, p.warnings())
			}
			for _, want := range []string{"FormerFinalizers", "RetiredFinalizers", "the controller has no Finalizer"} {
				if !strings.Contains(p.warnings(), want) {
					t.Errorf("the log does not name %q: %s", want, p.warnings())
				}
			}
		})
	})
	t.Run("cannot be in use", func(t *testing.T) {
		t.Parallel()
		_, err := controller.New(doNothing[Garden]).Finalizer(former, cleaning(doNothing[Garden])).RetiredFinalizers(former).Needs()
		if err == nil || !strings.Contains(err.Error(), former) {
			t.Errorf("error: %v", err)
		}
	})
}

// An object that stopped matching the selector kept its finalizer, and could never be deleted.
func TestObjectThatStopsMatchingIsCleanedUp(t *testing.T) {
	t.Parallel()
	const finalizer = "x.example.com/y"
	selected := func(name string) *Garden {
		g := garden(name)
		g.Labels = map[string]string{"tended": "yes"}
		return g
	}
	run := func(t *testing.T, c *kube.Client, calls *journal) *program {
		return start(t, c, controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record("reconciled " + g.Name)
			return controller.Done(), nil
		}, controller.Reconciled(controller.Select(kube.Label("tended", "yes")))).
			Finalizer(finalizer, func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
				calls.record("cleaned up " + g.Name)
				return controller.CleanupDone(), nil
			}))
	}
	deselect := func(t *testing.T, c *kube.Client, name string) {
		t.Helper()
		_, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), name,
			kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tended": nil}}}))
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, s *server, c *kube.Client, calls *journal) {
		t.Helper()
		if got := strings.Join(calls.drain(), ", "); got != "cleaned up eden" {
			t.Errorf("calls: %s, want one cleanup", got)
		}
		live, err := kube.Get[Garden](t.Context(), c, "default", "eden")
		if err != nil || len(live.Finalizers) > 0 {
			t.Errorf("the object is left with the finalizers %v, %v", live.Finalizers, err)
		}
		remove(t, c, garden("eden"))
		synctest.Wait()
		if s.object("gardens", "default", "eden") != nil {
			t.Error("the object cannot be deleted")
		}
		if live, err := kube.Get[Garden](t.Context(), c, "default", "other"); err != nil || len(live.Finalizers) != 1 {
			t.Errorf("the object that still matches has the finalizers %v, %v", live.Finalizers, err)
		}
	}
	t.Run("while the program runs", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *server) {
			c := s.client()
			create(t, c, selected("eden"))
			create(t, c, selected("other"))
			var calls journal
			run(t, c, &calls)
			time.Sleep(time.Minute)
			calls.drain()
			deselect(t, c, "eden")
			time.Sleep(time.Minute)
			check(t, s, c, &calls)
		})
	})
	t.Run("while the program is down", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *server) {
			c := s.client()
			create(t, c, selected("eden"))
			create(t, c, selected("other"))
			create(t, c, garden("unselected"))
			var calls journal
			run(t, c, &calls).stop()
			p := run(t, c, &calls)
			time.Sleep(time.Minute)
			p.stop()
			deselect(t, c, "eden")
			calls.drain()
			run(t, c, &calls)
			time.Sleep(time.Minute)
			calls.drop("reconciled other")
			check(t, s, c, &calls)
		})
	})
}

// drop removes the lines equal to line.
func (j *journal) drop(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.lines[:0]
	for _, each := range j.lines {
		if each != line {
			kept = append(kept, each)
		}
	}
	j.lines = kept
}
