package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// A wait for ever was no wait: the sum with its jitter overflowed, and the object was reconciled without a pause.
func TestWaitForEver(t *testing.T) {
	t.Parallel()
	const never = math.MaxInt64
	for name, build := range map[string]func(reconcile func(error) (controller.Action, error)) *controller.Controller[Garden]{
		"backoff": func(reconcile func(error) (controller.Action, error)) *controller.Controller[Garden] {
			return controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
				return reconcile(errors.New("broken"))
			}).
				Backoff(func(*Garden, error, int) time.Duration { return never })
		},
		"every": func(reconcile func(error) (controller.Action, error)) *controller.Controller[Garden] {
			return controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) { return reconcile(nil) }, controller.Every(never))
		},
		"debounce": func(reconcile func(error) (controller.Action, error)) *controller.Controller[Garden] {
			return controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) { return reconcile(nil) }, controller.Debounce(never))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				create(t, c, garden("eden"))
				ctx, cancel := context.WithCancel(t.Context())
				var calls journal
				part := build(func(err error) (controller.Action, error) {
					if calls.record("call"); calls.count() == 100 {
						cancel()
					}
					return controller.Done(), err
				})
				if needs, err := part.Needs(); err != nil || needs.ShutdownTime < 0 {
					t.Errorf("needs %s of time to end, %v", needs.ShutdownTime, err)
				}
				startIn(ctx, t, c, part)
				time.Sleep(time.Second)
				for i := range 3 { // changes during a debounce for ever were not held back
					changed := garden("eden")
					changed.Spec.Size = i + 10
					if name == "debounce" {
						apply(t, c, changed)
					}
				}
				time.Sleep(time.Hour)
				if n := len(calls.drain()); n != 1 {
					t.Errorf("%d calls within an hour", n)
				}
			})
		})
	}
}

// RequeueAfter(30) made 36,000 reconciles a second.
func TestWaitWithoutAUnit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits []time.Duration // the last one repeats
		want  []time.Duration // the times of the calls
		isLog bool
	}{
		"nanoseconds": {[]time.Duration{30}, []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 1020 * time.Millisecond, 2020 * time.Millisecond}, true},
		"milliseconds": {
			[]time.Duration{time.Millisecond}, []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond}, false,
		},
		"computed": {
			[]time.Duration{500 * time.Millisecond, 300 * time.Microsecond, 300 * time.Microsecond, 299 * time.Microsecond, time.Minute},
			[]time.Duration{0, 500 * time.Millisecond, 510 * time.Millisecond, 520 * time.Millisecond, 530 * time.Millisecond}, false,
		},
	} {
		for _, function := range []string{"reconcile", "cleanup"} {
			t.Run(name+" of a "+function, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *server) {
					c := s.client()
					begin := time.Now()
					var calls journal
					next := func(g *Garden) time.Duration {
						calls.record(fmt.Sprint(g.Name, " ", time.Since(begin)))
						return test.waits[min(calls.countOf(g.Name+" "), len(test.waits))-1]
					}
					part := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
						return controller.RequeueAfter(next(g)), nil
					}, controller.Concurrency(1))
					if function == "cleanup" {
						part = controller.New(doNothing[Garden], controller.Concurrency(1)).Finalizer(finalizer, func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
							return controller.CleanupRequeueAfter(next(g)), nil
						})
					}
					for _, name := range []string{"eden", "hortus"} {
						g := garden(name)
						if function == "cleanup" {
							g.Finalizers = []string{finalizer}
						}
						create(t, c, g)
						if function == "cleanup" {
							remove(t, c, garden(name))
						}
					}
					p := start(t, c, part)
					time.Sleep(10 * time.Second)
					var want []string
					for _, at := range test.want {
						want = append(want, fmt.Sprint("eden ", at))
					}
					got := slices.DeleteFunc(calls.drain(), func(line string) bool { return line[0] != 'e' })
					if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
					if lines := p.log.lines(slog.LevelWarn); (len(lines) == 1) != test.isLog || len(lines) > 1 {
						t.Errorf("warnings: %q", lines)
					}
				})
			})
		}
	}
}
