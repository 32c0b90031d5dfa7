package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Bug: the second status in one reconcile conflicted with the first.
func TestTwoStatusesInOneReconcile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var failed []error
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Status.Size == 2 {
				return controller.Done(), nil
			}
			for size := range 2 { // in progress, and done
				g.Status.Size = size + 1
				if err := c.ApplyStatus(ctx, g); err != nil {
					failed = append(failed, err)
					return controller.Done(), err
				}
			}
			return controller.Done(), nil
		}))
		time.Sleep(time.Minute)
		if len(failed) > 0 {
			t.Errorf("%d errors, the first: %v", len(failed), failed[0])
		}
		if g, err := kube.Get[Garden](t.Context(), c, "default", "eden"); err != nil || g.Status.Size != 2 {
			t.Errorf("the object is %+v: %v", g, err)
		}
	})
}

// Bug: a reconcile that is slower than others change its object never wrote its status, and
// the log was empty.
func TestStatusOfABusyObject(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			select {
			case <-time.After(30 * time.Second):
			case <-ctx.Done():
			}
			g.Status.Size = g.Spec.Size
			return controller.Done(), c.ApplyStatus(ctx, g)
		}))
		gardens := kube.Namespaced[Garden](c, "default")
		for i := range 12 {
			time.Sleep(10 * time.Second)
			heartbeat := map[string]any{"metadata": map[string]any{"annotations": map[string]string{"heartbeat": fmt.Sprint(i)}}}
			if _, err := gardens.Patch(t.Context(), "eden", kube.MergePatch(heartbeat)); err != nil {
				t.Fatal(err)
			}
		}
		g, err := gardens.Get(t.Context(), "eden")
		if err != nil || g.Status.Size != g.Spec.Size || g.Status.Size == 0 {
			t.Errorf("the status after two minutes is %+v: %v", g.Status, err)
		}
	})
}

// With SkipOwnStatus, a write of the own status leads to no further reconcile. Everything else leads to one. A
// reconcile that writes its status was called twice, which is dear with an external system.
func TestSkipOwnStatus(t *testing.T) {
	t.Parallel()
	writeStatus := func(ctx context.Context, g *Garden, c *kube.Client) error {
		g.Status.Size = g.Spec.Size
		return c.ApplyStatus(ctx, g)
	}
	label := func(ctx context.Context, c *kube.Client) error {
		patch := kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"by": "a stranger"}}})
		_, err := kube.Namespaced[Garden](c, "default").Patch(ctx, "eden", patch)
		return err
	}
	for name, test := range map[string]struct {
		options []controller.KindOption
		// reconcile is one reconcile, whose number is call. stranger is a client of somebody else.
		reconcile func(ctx context.Context, call int, g *Garden, c, stranger *kube.Client) error
		want      int
		// wantLate is the number of calls if the watch shows the write after the next reconcile. Zero stands for want.
		wantLate int
	}{
		"without the option": {
			reconcile: func(ctx context.Context, _ int, g *Garden, c, _ *kube.Client) error { return writeStatus(ctx, g, c) },
			want:      2,
		},
		"with the option": {
			options:   []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, _ int, g *Garden, c, _ *kube.Client) error { return writeStatus(ctx, g, c) },
			want:      1,
		},
		"two writes": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, _ int, g *Garden, c, _ *kube.Client) error {
				g.Status.Size = 7
				return errors.Join(c.ApplyStatus(ctx, g), writeStatus(ctx, g, c))
			},
			want: 1,
		},
		"a replace": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, _ int, g *Garden, c, _ *kube.Client) error {
				g.Status.Size = g.Spec.Size
				_, err := kube.Namespaced[Garden](c, "default").Status().Replace(ctx, g)
				return err
			},
			want: 1,
		},
		"a label by a stranger before the write": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, call int, g *Garden, c, stranger *kube.Client) error {
				if call == 1 {
					return errors.Join(label(ctx, stranger), writeStatus(ctx, g, c))
				}
				return writeStatus(ctx, g, c)
			},
			want: 2,
		},
		"a label by a stranger after the write": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, call int, g *Garden, c, stranger *kube.Client) error {
				if call == 1 {
					return errors.Join(writeStatus(ctx, g, c), label(ctx, stranger))
				}
				return writeStatus(ctx, g, c)
			},
			want: 2,
		},
		"an own label after the write": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, call int, g *Garden, c, _ *kube.Client) error {
				if call == 1 {
					return errors.Join(writeStatus(ctx, g, c), label(ctx, c))
				}
				return writeStatus(ctx, g, c)
			},
			want: 2,
		},
		"an error after the write": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, call int, g *Garden, c, _ *kube.Client) error {
				if err := writeStatus(ctx, g, c); err != nil || call > 1 {
					return err
				}
				return errors.New("the external system is away")
			},
			want: 2, wantLate: 3,
		},
		"a terminal error after the write": {
			options: []controller.KindOption{controller.SkipOwnStatus()},
			reconcile: func(ctx context.Context, call int, g *Garden, c, _ *kube.Client) error {
				if err := writeStatus(ctx, g, c); err != nil || call > 1 {
					return err
				}
				return controller.Terminal(errors.New("the spec is wrong"))
			},
			want: 2,
		},
	} {
		for _, delay := range []time.Duration{0, 3 * time.Second} { // of the watch
			t.Run(fmt.Sprint(name, ", a watch that is late by ", delay), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *server) {
					c := s.client()
					create(t, c, garden("eden"))
					var count atomic.Int64
					start(t, c, controller.New(func(ctx context.Context, g *Garden, rc *kube.Client) (controller.Action, error) {
						call := int(count.Add(1))
						if call == 1 {
							s.feeds(func(f *feed) bool { f.stream.Delay(delay); return true })
						}
						return controller.Done(), test.reconcile(ctx, call, g, rc, c.WithFieldManager("stranger"))
					}, controller.Reconciled(test.options...)))
					time.Sleep(time.Minute)
					g, err := kube.Get[Garden](t.Context(), c, "default", "eden")
					want := test.want
					if delay > 0 && test.wantLate > 0 {
						want = test.wantLate
					}
					if calls := int(count.Load()); err != nil || g.Status.Size != 1 || calls != want {
						t.Errorf("%d calls, want %d; the status is %+v: %v", calls, want, g.Status, err)
					}
				})
			})
		}
	}
}
