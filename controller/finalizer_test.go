package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const finalizer = "test.example.com/cleanup"

// gardening returns a controller that records its calls.
func gardening(calls *journal, options ...controller.Option) *controller.Controller[Garden] {
	return controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
		calls.record(fmt.Sprint("reconcile ", g.Name, " ", g.Finalizers))
		return controller.Done(), nil
	}, options...).Finalizer(finalizer, func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
		calls.record("cleanup " + g.Name)
		return controller.CleanupDone(), nil
	})
}

// Promise 17: the finalizer is there before anything else is done, and goes after cleanup.
func TestFinalizer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		start(t, c, gardening(&calls))
		create(t, c, garden("eden"))
		synctest.Wait()
		if got := calls.drain(); len(got) == 0 || got[0] != "reconcile eden [test.example.com/cleanup]" {
			t.Errorf("calls after the creation: %q", got)
		}
		remove(t, c, garden("eden"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"cleanup eden"}, calls.drain()); diff != "" {
			t.Errorf("calls after the deletion (-want +got):\n%s", diff)
		}
		if s.object("gardens", "default", "eden") != nil {
			t.Error("the object is still there")
		}
	})
}

// Promise 17: an object that was deleted while the program was down is cleaned up, although
// this program never reconciled it; an object without the finalizer is left alone.
func TestDeletionWhileDown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		for name, f := range map[string]string{"ours": finalizer, "theirs": "other.example.com/x"} {
			g := garden(name)
			g.Finalizers = []string{f}
			create(t, c, g)
			remove(t, c, g)
		}
		start(t, c, gardening(&calls))
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"cleanup ours"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if got := meta(s.object("gardens", "default", "theirs"))["finalizers"]; fmt.Sprint(got) != "[other.example.com/x]" {
			t.Errorf("the finalizers of an object that is being deleted: %v", got)
		}
	})
}

// Promise 17: the cleanup removes the controller's own finalizer, and no finalizer of others.
func TestCleanupKeepsFinalizersOfOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		g := garden("eden")
		g.Finalizers = []string{"other.example.com/x", finalizer, "other.example.com/y"}
		create(t, c, g)
		remove(t, c, g)
		start(t, c, gardening(&calls))
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"cleanup eden"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		left := s.object("gardens", "default", "eden")
		if left == nil {
			t.Fatal("the object is gone, although it has finalizers of others")
		}
		if got := fmt.Sprint(meta(left)["finalizers"]); got != "[other.example.com/x other.example.com/y]" {
			t.Errorf("the finalizers are %s, want those of others", got)
		}
	})
}

// Promise 17: the finalizer goes only after cleanup is done, whatever else it returns.
func TestCleanupThatIsNotFinished(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first func() (controller.Cleanup, error)
		// again is the time of the second call.
		again time.Duration
	}{
		"error":        {func() (controller.Cleanup, error) { return controller.CleanupDone(), errors.New("broken") }, time.Minute},
		"panic":        {func() (controller.Cleanup, error) { panic("broken") }, time.Minute},
		"pending":      {func() (controller.Cleanup, error) { return controller.CleanupPending(), nil }, time.Hour},
		"zero value":   {func() (controller.Cleanup, error) { return controller.Cleanup{}, nil }, time.Hour},
		"requeue":      {func() (controller.Cleanup, error) { return controller.CleanupRequeueAfter(5 * time.Minute), nil }, 5 * time.Minute},
		"requeue soon": {func() (controller.Cleanup, error) { return controller.CleanupRequeueAfter(0), nil }, time.Second},
		"terminal": {func() (controller.Cleanup, error) {
			return controller.CleanupDone(), controller.Terminal(errors.New("no"))
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				begin := time.Now()
				var calls journal
				c := s.client()
				g := garden("eden")
				g.Finalizers = []string{finalizer}
				create(t, c, g)
				remove(t, c, g)
				first := true
				p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
					calls.record("reconcile")
					return controller.Done(), nil
				}).Finalizer(finalizer, func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
					calls.record(time.Since(begin).String())
					if !first {
						return controller.CleanupDone(), nil
					}
					first = false
					return test.first()
				}).Backoff(func(*Garden, error, int) time.Duration { return time.Minute }))
				time.Sleep(test.again - time.Millisecond)
				if s.object("gardens", "default", "eden") == nil {
					t.Fatal("the object is gone before cleanup was done")
				}
				// Regression: the log named each cleanup without an error "cleaned up", also one that only waits.
				if lines := p.log.lines(slog.LevelDebug); slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "cleaned up") }) {
					t.Errorf("the log says that the object is cleaned up: %q", lines)
				}
				if test.again == time.Hour { // only a change helps
					time.Sleep(time.Millisecond)
					change := garden("eden")
					change.Labels = map[string]string{"changed": "yes"}
					apply(t, c, change)
				}
				time.Sleep(max(time.Second, test.again/8)) // a back-off takes up to a tenth more
				got := calls.drain()
				if len(got) != 2 || got[0] != "0s" {
					t.Fatalf("calls at %v, want one at once and one after %s", got, test.again)
				}
				if again, err := time.ParseDuration(got[1]); err != nil || again < test.again || again > test.again+test.again/10 {
					t.Errorf("called again after %s, want %s or up to a tenth more", got[1], test.again)
				}
				if s.object("gardens", "default", "eden") != nil {
					t.Error("the object is still there")
				}
			})
		})
	}
}

// Promise 17: what others do at the same moment. The patch that adds the finalizer is held
// back until they have.
func TestFinalizerBesideOthers(t *testing.T) {
	t.Parallel()
	set := func(t *testing.T, s *server, finalizers ...string) {
		if _, err := kube.Namespaced[Garden](s.client(), "default").Patch(t.Context(), "eden",
			kube.JSONPatch(kube.AddAt("/metadata/finalizers", finalizers))); err != nil {
			t.Error(err)
		}
	}
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, s *server)
		want      []string
		there     string
	}{
		"another instance was quicker": {
			func(t *testing.T, s *server) { set(t, s, finalizer) },
			[]string{"reconcile eden [test.example.com/cleanup]"}, "[test.example.com/cleanup]",
		},
		"another manager adds its own": {
			func(t *testing.T, s *server) { set(t, s, "other.example.com/x") },
			[]string{"reconcile eden [other.example.com/x test.example.com/cleanup]"}, "[other.example.com/x test.example.com/cleanup]",
		},
		"the object is deleted": {
			func(t *testing.T, s *server) { remove(t, s.client(), garden("eden")) }, nil, "",
		},
		"the deletion begins": {
			func(t *testing.T, s *server) {
				set(t, s, "other.example.com/x")
				remove(t, s.client(), garden("eden"))
			}, nil, "[other.example.com/x]",
		},
		"the object is made anew": {
			func(t *testing.T, s *server) {
				remove(t, s.client(), garden("eden"))
				create(t, s.client(), garden("eden"))
			}, []string{"reconcile eden [test.example.com/cleanup]"}, "[test.example.com/cleanup]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				create(t, c, garden("eden"))
				first := true
				held := c.With(func(next wire.Handler) wire.Handler {
					return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
						if r.ContentType == wire.ContentJSONPatch && first {
							first = false
							test.meanwhile(t, s)
						}
						return next.Do(ctx, r)
					})
				})
				p := start(t, held, gardening(&calls))
				time.Sleep(time.Minute)
				got := calls.drain()
				if len(got) > 1 { // once more, for the events
					got = got[:1]
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				there := ""
				if o := s.object("gardens", "default", "eden"); o != nil {
					there = fmt.Sprint(meta(o)["finalizers"])
				}
				if there != test.there {
					t.Errorf("the finalizers are %s, want %s", there, test.there)
				}
				if logs := p.log.lines(slog.LevelError); len(logs) > 0 {
					t.Errorf("the log has %q", logs)
				}
			})
		})
	}
}

// A finalizer that the server refuses is an error of each reconcile, and the back-off policy is
// called.
func TestFinalizerThatIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls, asked journal
		c := s.client()
		create(t, c, garden("eden"))
		s.before = func(r *wire.Request) error {
			if r.ContentType == wire.ContentJSONPatch {
				return refuse(r, 422, "Invalid", "spec.size")
			}
			return nil
		}
		p := start(t, c, gardening(&calls).Backoff(func(g *Garden, _ error, _ int) time.Duration {
			asked.record(g.Name)
			return time.Hour
		}))
		time.Sleep(time.Minute)
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("calls without a finalizer: %q", got)
		}
		if diff := cmp.Diff([]string{"eden"}, asked.drain()); diff != "" {
			t.Errorf("the policy was asked (-want +got):\n%s", diff)
		}
		if got := len(p.log.lines(slog.LevelError)); got != 1 {
			t.Errorf("%d lines, want 1", got)
		}
	})
}

// When the name of the finalizer changes, objects that carry the old one get the new one
// beside it; the author of the old one removes it.
func TestFinalizerNameChanged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		g := garden("eden")
		g.Finalizers = []string{"test.example.com/old"}
		create(t, c, g)
		start(t, c, gardening(&calls))
		synctest.Wait()
		remove(t, c, g)
		synctest.Wait()
		got := calls.drain()
		if got[len(got)-1] != "cleanup eden" {
			t.Errorf("calls: %q", got)
		}
		left := s.object("gardens", "default", "eden")
		if left == nil {
			t.Fatal("the object is gone, although it has finalizers of others")
		}
		if got := fmt.Sprint(meta(left)["finalizers"]); got != "[test.example.com/old]" {
			t.Errorf("the finalizers are %s, want the old one", got)
		}
	})
}

const former = "test.example.com/former"

// Promise 17: one cleanup serves the finalizer and its former names, which go in one patch after the cleanup.
func TestFormerFinalizersAreCleanedUp(t *testing.T) {
	t.Parallel()
	for name, finalizers := range map[string][]string{
		"only the former one": {former}, "both": {former, finalizer}, "the former one and others": {"other.example.com/x", former},
		"a retired one too": {former, "test.example.com/retired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				g := garden("eden")
				g.Finalizers = finalizers
				create(t, c, g)
				remove(t, c, g)
				patches := countPatches(s)
				hasFailed := false
				start(t, c, controller.New(doNothing[Garden]).Finalizer(finalizer, func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
					calls.record(fmt.Sprint(g.Finalizers))
					if !hasFailed {
						hasFailed = true
						return controller.CleanupDone(), errors.New("broken")
					}
					return controller.CleanupDone(), nil
				}).FormerFinalizers(former).RetiredFinalizers("test.example.com/retired"))
				time.Sleep(time.Hour)
				if diff := cmp.Diff([]string{fmt.Sprint(finalizers), fmt.Sprint(finalizers)}, calls.drain()); diff != "" {
					t.Errorf("cleanups with the finalizers (-want +got):\n%s", diff)
				}
				var left []any
				if o := s.object("gardens", "default", "eden"); o != nil {
					left = meta(o)["finalizers"].([]any)
				}
				if isForeign := finalizers[0] == "other.example.com/x"; isForeign != (len(left) == 1) || len(left) > 1 {
					t.Errorf("the object has the finalizers %v", left)
				}
				if n := patches(); n != 1 {
					t.Errorf("%d patches, want 1", n)
				}
			})
		})
	}
}

// Promise 17: an object that is not being deleted has the finalizer at every moment. The patch that adds the present
// name removes the former one.
func TestFormerFinalizersAreReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		g := garden("eden")
		g.Finalizers = []string{former, "other.example.com/x", "test.example.com/retired"}
		create(t, c, g)
		patches := countPatches(s)
		start(t, c, gardening(&calls).FormerFinalizers(former).RetiredFinalizers("test.example.com/retired"))
		synctest.Wait()
		got := calls.drain()
		if want := "reconcile eden [other.example.com/x test.example.com/cleanup]"; len(got) == 0 || got[0] != want {
			t.Errorf("calls: %q, want %q first", got, want)
		}
		if n := patches(); n != 1 {
			t.Errorf("%d patches, want 1", n)
		}
	})
}

// Former and retired finalizers of an object for which FinalizerWhen returns false may belong to another instance of
// the program. They stay, and the log says why the object does not go.
func TestFinalizersOfAnotherInstanceStay(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		for _, name := range []string{former, "test.example.com/retired"} {
			for _, isDeleted := range []bool{false, true} {
				for _, size := range []int{1, 7} {
					g := garden(fmt.Sprintf("%s-%d-%t", name[len("test.example.com/"):], size, isDeleted))
					g.Finalizers, g.Spec.Size = []string{name}, size
					create(t, c, g)
					if isDeleted {
						remove(t, c, g)
					}
				}
			}
		}
		p := start(t, c, gardening(&calls).FinalizerWhen(func(g *Garden) bool { return g.Spec.Size > 5 }).
			FormerFinalizers(former).RetiredFinalizers("test.example.com/retired"))
		time.Sleep(time.Hour)
		var cleanups []string
		for _, call := range calls.drain() {
			if strings.HasPrefix(call, "cleanup") {
				cleanups = append(cleanups, call)
			}
		}
		if diff := cmp.Diff([]string{"cleanup former-7-true"}, cleanups); diff != "" {
			t.Errorf("cleanups (-want +got):\n%s", diff)
		}
		for name, want := range map[string]string{
			"former-1-false": "[test.example.com/former]", "former-1-true": "[test.example.com/former]", "former-7-false": "[test.example.com/cleanup]",
			"retired-1-false": "[test.example.com/retired]", "retired-1-true": "[test.example.com/retired]", "retired-7-false": "[test.example.com/cleanup]",
			"former-7-true": "", "retired-7-true": "",
		} {
			got := ""
			if o := s.object("gardens", "default", name); o != nil {
				got = fmt.Sprint(meta(o)["finalizers"])
			}
			if got != want {
				t.Errorf("%s has the finalizers %q, want %q", name, got, want)
			}
		}
		for _, name := range []string{"former-1-true", "retired-1-true"} {
			if n := strings.Count(p.warnings(), "name="+name); n != 1 || !strings.Contains(p.warnings(), "FinalizerWhen") {
				t.Errorf("%d warnings name %s, want 1: %s", n, name, p.warnings())
			}
		}
	})
}

// An API server accepts a finalizer without a slash for a custom resource only.
func TestFinalizerWithoutADomain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(doNothing[Garden]).Finalizer("finalizer.example.com", func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
			calls.record(fmt.Sprint("cleanup ", g.Finalizers))
			return controller.CleanupDone(), nil
		}))
		synctest.Wait()
		remove(t, c, garden("eden"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"cleanup [finalizer.example.com]"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if n := strings.Count(p.warnings(), "finalizer.example.com"); n != 1 {
			t.Errorf("%d warnings name the finalizer, want 1: %s", n, p.warnings())
		}
	})
}

// countPatches counts the JSON patches that s receives from now on. It returns a function that returns the count.
func countPatches(s *server) func() int {
	var n atomic.Int32
	s.before = func(r *wire.Request) error {
		if r.ContentType == wire.ContentJSONPatch {
			n.Add(1)
		}
		return nil
	}
	return func() int { return int(n.Load()) }
}

// An object with the finalizer does not fit its Go type any more, and is deleted. One line names the field, the object and what to
// do. The cleanup runs once the object fits again.
func TestDeletedObjectThatDoesNotFitItsType(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) { return controller.Done(), nil }).
			Finalizer(finalizer, func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
				return controller.CleanupDone(), nil
			}))
		create(t, c, garden("eden"))
		time.Sleep(time.Minute)
		gardens, err := kube.TypeOf[Garden]()
		if err != nil {
			t.Fatal(err)
		}
		set := func(size any) {
			t.Helper()
			if _, err := kube.Dynamic(c, gardens.Resource, "default").Patch(t.Context(), "eden", kube.MergePatch(map[string]any{"spec": map[string]any{"size": size}})); err != nil {
				t.Fatal(err)
			}
		}
		set("large")
		time.Sleep(time.Minute)
		before := len(p.log.lines(slog.LevelError))
		remove(t, c, garden("eden"))
		time.Sleep(24 * time.Hour)
		lines := p.log.lines(slog.LevelError)[before:]
		if len(lines) != 1 {
			t.Fatalf("the deletion has led to the lines %q", lines)
		}
		for _, want := range []string{"is being deleted, and keeps the finalizers " + finalizer, "uninstall with --remove-finalizers", "default/eden", "size"} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("the line lacks %q: %s", want, lines[0])
			}
		}
		set(7)
		time.Sleep(time.Minute)
		if o := s.object("gardens", "default", "eden"); o != nil {
			t.Errorf("the object fits again, and has not been cleaned up: %v", o)
		}
	})
}
