package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// With CancelDeleted, the deletion of an object ends the context of its reconcile. The cleanup starts
// once the reconcile has returned, and the end of the reconcile is no failure.
func TestCancelDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []controller.Option
		want    []string
	}{
		"with":    {[]controller.Option{controller.CancelDeleted()}, []string{"reconcile", "0s: the object is being deleted", "cleanup after 10s"}},
		"without": {nil, []string{"reconcile", "50m0s: hour", "cleanup after 50m10s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				create(t, c, garden("eden"))
				var deleted time.Time
				p := start(t, c, controller.New(func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Action, error) {
					calls.record("reconcile")
					cause := "hour"
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx).Error()
					case <-time.After(time.Hour):
					}
					calls.record(time.Since(deleted).String() + ": " + cause)
					time.Sleep(10 * time.Second)
					return controller.RequeueAfter(time.Second), ctx.Err()
				}, test.options...).Finalizer(finalizer, func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
					calls.record("cleanup after " + time.Since(deleted).String())
					return controller.CleanupDone(), nil
				}))
				time.Sleep(10 * time.Minute)
				deleted = time.Now()
				remove(t, c, garden("eden"))
				time.Sleep(3 * time.Hour)
				if diff := cmp.Diff(test.want, calls.drain()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if logs := p.log.lines(slog.LevelError); len(logs) > 0 {
					t.Errorf("the log has %q", logs)
				}
				if s.object("gardens", "default", "eden") != nil {
					t.Error("the object is still there")
				}
			})
		})
	}
}

// OnGone is called with the key of an object that is gone, after its last reconcile, and not for an
// existing object.
func TestOnGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, garden("hortus"))
		p := start(t, c, controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			if g.Name == "eden" {
				time.Sleep(time.Minute)
				calls.record("reconciled " + g.Name)
			}
			return controller.Done(), nil
		}, controller.OnGone(func(k kube.Key) { calls.record("gone " + k.String()) }), controller.OnGone(func(kube.Key) { panic("no matter") })))
		time.Sleep(time.Second)
		remove(t, c, garden("eden"))
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"reconciled eden", "gone default/eden"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if logs := strings.Join(p.log.lines(slog.LevelError), ""); !strings.Contains(logs, "no matter") {
			t.Errorf("the log: %q", logs)
		}
	})
}

// The finalizer is added before the reconcile when the condition first holds, and stays until the
// cleanup is done. An object that never met the condition has no cleanup.
func TestFinalizerWhen(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("small"))
		create(t, c, garden("eden"))
		start(t, c, gardening(&calls, controller.Concurrency(1)).FinalizerWhen(func(g *Garden) bool { return g.Spec.Size > 5 }))
		synctest.Wait()
		calls.drain()
		resize := func(size int) {
			g := garden("eden")
			g.Spec.Size = size
			apply(t, c, g)
			synctest.Wait()
		}
		resize(7)
		if got := calls.drain(); len(got) == 0 || got[0] != "reconcile eden [test.example.com/cleanup]" {
			t.Errorf("calls once the condition holds: %q", got)
		}
		resize(1)
		if diff := cmp.Diff([]string{"reconcile eden [test.example.com/cleanup]"}, calls.drain()); diff != "" {
			t.Errorf("calls when the condition holds no longer (-want +got):\n%s", diff)
		}
		remove(t, c, garden("eden"))
		remove(t, c, garden("small"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"cleanup eden"}, calls.drain()); diff != "" {
			t.Errorf("calls after the deletion (-want +got):\n%s", diff)
		}
	})
}

// A goroutine that a reconcile had left behind created a child after the cleanup, when the object was gone.
func TestClientRefusesWritesAfterTheReconcile(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]controller.Option{"without a timeout": nil, "with a timeout": {controller.Timeout(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				late := make(chan error, 1)
				start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
					go func() {
						time.Sleep(time.Minute)
						_, err := kube.Apply(context.WithoutCancel(ctx), c, kube.OwnedBy(g, plant("rose")))
						late <- err
					}()
					return controller.Done(), nil
				}, append(options, controller.Owns[Plant]())...).Finalizer(finalizer, cleaning(doNothing[Garden])))
				create(t, c, garden("eden"))
				time.Sleep(time.Second)
				remove(t, c, garden("eden"))
				time.Sleep(time.Second)
				if s.object("gardens", "default", "eden") != nil {
					t.Fatal("the garden is not gone")
				}
				if err := <-late; err == nil || !strings.Contains(err.Error(), "has returned") {
					t.Errorf("the late write: %v", err)
				}
				if s.object("plants", "default", "rose") != nil {
					t.Error("the child was created")
				}
			})
		})
	}
}

// An object that had failed and then waited for the finalizers of others stayed among the failing objects for ever.
func TestObjectThatWaitsForOthersIsNotFailing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		caches := cache.New(c)
		defer caches.Close()
		observer := make(statsObserver, 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
				return controller.Done(), errors.New("the spec is wrong")
			}).Start(ctx, &controller.Runtime{Client: c, Cache: caches, Log: slog.New(slog.DiscardHandler), Observer: observer})
		}()
		g := garden("eden")
		g.Finalizers = []string{"other.example.com/x"}
		create(t, c, g)
		time.Sleep(time.Minute)
		stats := <-observer
		if n := stats().Failing; n != 1 {
			t.Errorf("before the deletion %d objects fail, want 1", n)
		}
		remove(t, c, garden("eden"))
		time.Sleep(time.Hour)
		if n := stats().Failing; n != 0 {
			t.Errorf("%d objects fail although nothing is called for any, want 0", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A controller whose kind is forbidden, absent or undecodable delays no other controller.
func TestControllersStartByThemselves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code   int
		reason metav1.StatusReason
	}{"forbidden": {http.StatusForbidden, metav1.StatusReasonForbidden}, "absent": {http.StatusNotFound, metav1.StatusReasonNotFound}, "undecodable": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				var calls journal
				create(t, c, garden("eden"))
				create(t, c, plant("rose"))
				if _, err := kube.Dynamic(c, plantResource(t), "default").Patch(t.Context(), "rose", kube.MergePatch(map[string]any{"spec": map[string]any{"height": "tall"}})); err != nil {
					t.Fatal(err)
				}
				s.before = func(r *wire.Request) error {
					if test.code != 0 && r.Resource.Plural == "plants" {
						return refuse(r, test.code, test.reason)
					}
					return nil
				}
				start(t, c, controller.New(doNothing[Plant]), controller.New(recordingNames(&calls)),
					controller.New(recordingNames(&calls), controller.Name("other"), controller.Every(time.Hour)))
				time.Sleep(time.Second)
				create(t, c, garden("hortus"))
				time.Sleep(time.Second)
				got := calls.drain()
				slices.Sort(got)
				if diff := cmp.Diff([]string{"eden", "eden", "hortus", "hortus"}, got); diff != "" {
					t.Errorf("reconciled within two seconds (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func plantResource(t *testing.T) wire.Resource {
	t.Helper()
	plants, err := kube.TypeOf[Plant]()
	if err != nil {
		t.Fatal(err)
	}
	return plants.Resource
}
