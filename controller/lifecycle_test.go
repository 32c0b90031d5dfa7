package controller_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
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
