package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2" //nolint:depguard // libraries log by it

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// A test can move the time of a program: its requeues, its retries, its delayed triggers, Every and
// Now. No real time passes, and each reconcile sees the time for which it was due.
func TestMovedTime(t *testing.T) {
	for name, test := range map[string]struct {
		reconcile func(call int) (controller.Action, error)
		option    controller.Option
		want      []string
	}{
		"requeue": {
			func(int) (controller.Action, error) { return controller.RequeueAfter(20 * time.Second), nil },
			controller.Name("gardens"), []string{"0s", "20s", "40s", "1m0s"},
		},
		"retry": {
			func(call int) (controller.Action, error) {
				if call == 1 {
					return controller.Done(), errors.New("not yet")
				}
				return controller.Done(), nil
			},
			controller.Name("gardens"), []string{"0s", "30s"},
		},
		"delayed trigger": {
			func(int) (controller.Action, error) { return controller.Done(), nil },
			controller.From(func(ctx context.Context, emit func(controller.Trigger)) error {
				emit(controller.Trigger{Key: kube.Key{Namespace: "default", Name: "a"}, NotBefore: controller.Now(ctx).Add(50 * time.Second)})
				return nil
			}), []string{"0s", "50s"},
		},
		"every": {
			func(int) (controller.Action, error) { return controller.Done(), nil },
			controller.Every(25 * time.Second), []string{"0s", "25s", "50s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				create(t, s.client(), garden("a"))
				c := clock.New()
				begun, realBegun := c.Now(), time.Now()
				var seen []string
				p := startIn(clock.With(context.Background(), c), t, s.client(), controller.New(
					func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Action, error) {
						now := controller.Now(ctx)
						if passed := time.Since(realBegun); passed != 0 {
							t.Errorf("%s of real time passed", passed)
						}
						seen = append(seen, roughly(now.Sub(begun)))
						return test.reconcile(len(seen))
					},
					test.option,
				).Backoff(func(*Garden, error, int) time.Duration { return 30 * time.Second }))
				synctest.Wait()
				if err := c.Advance(t.Context(), time.Minute, time.Second); err != nil {
					t.Fatal(err)
				}
				p.stop()
				if !slices.Equal(seen, test.want) {
					t.Errorf("reconciled at %v, want %v", seen, test.want)
				}
			})
		})
	}
}

// roughly returns d without the tenth that chance may have added.
func roughly(d time.Duration) string {
	return d.Truncate(5 * time.Second).String()
}

// A controller whose streams are not synced is named.
func TestMovedTimeWaitsForTheController(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.unsynced = map[string]bool{"gardens": true}
		c := clock.New()
		startIn(clock.With(context.Background(), c), t, s.client(), controller.New(
			func(context.Context, *Garden, *kube.Client) (controller.Action, error) { return controller.Done(), nil },
		))
		synctest.Wait()
		err := c.Advance(t.Context(), time.Minute, time.Second)
		if want := "controller garden (not synced)"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	})
}

// A reconcile and a cleanup know the namespace of the program.
func TestNamespaceOfTheProgram(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var seen journal
		c := s.client()
		create(t, c, garden("eden"))
		caches := cache.New(c)
		defer caches.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		part := controller.New(func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Action, error) {
			seen.record("reconcile " + controller.Namespace(ctx))
			return controller.Done(), nil
		}).Finalizer(finalizer, func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Cleanup, error) {
			seen.record("cleanup " + controller.Namespace(ctx))
			return controller.CleanupDone(), nil
		})
		go func() { ended <- part.Start(ctx, &controller.Runtime{Client: c, Cache: caches, Namespace: "ops"}) }()
		synctest.Wait()
		if got := seen.drain(); len(got) == 0 || got[0] != "reconcile ops" {
			t.Errorf("seen: %q", got)
		}
		remove(t, c, garden("eden"))
		synctest.Wait()
		if got := seen.drain(); len(got) != 1 || got[0] != "cleanup ops" {
			t.Errorf("seen: %q", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if got := controller.Namespace(t.Context()); got != "" {
		t.Errorf("outside of a program: %q", got)
	}
}

// Libraries find the logger of a reconcile by the contexts of logr and klog.
func TestLibrariesLogWithTheFieldsOfTheReconcile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		create(t, s.client(), garden("a"))
		p := start(t, s.client(), controller.New(func(ctx context.Context, _ *Garden, _ *kube.Client) (controller.Action, error) {
			logr.FromContextOrDiscard(ctx).Info("by logr", "plants", 3)
			klog.FromContext(ctx).V(4).Info("by klog")
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			logr.FromContextOrDiscard(inner).Error(errors.New("dry"), "from an inner context")
			return controller.Done(), nil
		}))
		synctest.Wait()
		for level, want := range map[slog.Level]string{
			slog.LevelInfo:  `msg="by logr" controller=garden namespace=default name=a reconcileID=`,
			slog.LevelDebug: `msg="by klog" controller=garden namespace=default name=a reconcileID=`,
			slog.LevelError: `msg="from an inner context" controller=garden namespace=default name=a reconcileID=`,
		} {
			if lines := p.log.lines(level); !strings.Contains(strings.Join(lines, ""), want) {
				t.Errorf("the log lacks %q: %q", want, lines)
			}
		}
	})
}
