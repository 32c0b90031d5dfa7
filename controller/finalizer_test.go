package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
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
				start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
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
				held := c.With(func(next kube.Handler) kube.Handler {
					return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
						if r.ContentType == kube.ContentJSONPatch && first {
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
		s.before = func(r *kube.Request) error {
			if r.ContentType == kube.ContentJSONPatch {
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
