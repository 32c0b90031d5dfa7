package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

func part(run func(context.Context) error) Part {
	return Watcher[gadget](func(ctx context.Context, _ *kube.Client) error { return run(ctx) })
}

func noServer() *kube.Client {
	return kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		return nil, errors.New("there is no server")
	}))
}

// untilEnd returns a part that runs until its context ends, and then takes a second.
func untilEnd(finished *bool) Part {
	return part(func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(time.Second)
		*finished = true
		return fmt.Errorf("interrupted: %w", ctx.Err())
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	wrong := errors.New("it went wrong")
	after := func(d time.Duration, err error) Part {
		return part(func(context.Context) error { time.Sleep(d); return err })
	}
	for name, c := range map[string]struct {
		limit time.Duration // of the context; 0: an hour
		parts []Part
		takes time.Duration
		is    []error
	}{
		"a part that fails ends the others, which get to finish": {parts: []Part{after(time.Minute, wrong)}, takes: time.Minute + time.Second, is: []error{wrong}},
		"a part that is done does not end the others":            {parts: []Part{after(time.Minute, nil)}, takes: time.Hour + time.Second},
		"the end of the context is no error":                     {limit: time.Minute, takes: time.Minute + time.Second},
		"an error while it ends is one":                          {limit: time.Minute, parts: []Part{after(61*time.Second, wrong)}, takes: 61 * time.Second, is: []error{wrong}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for form, within := range map[string]func(context.Context, time.Duration) (context.Context, context.CancelFunc){
				"deadline": context.WithTimeout,
				"cancel": func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
					ctx, cancel := context.WithCancel(ctx)
					stop := time.AfterFunc(d, cancel)
					return ctx, func() { stop.Stop(); cancel() }
				},
			} {
				synctest.Test(t, func(t *testing.T) {
					limit := c.limit
					if limit == 0 {
						limit = time.Hour
					}
					ctx, cancel := within(t.Context(), limit)
					defer cancel()
					finished := false
					started := time.Now()
					err := Run(ctx, noServer(), append([]Part{untilEnd(&finished)}, c.parts...)...)
					if !finished {
						t.Errorf("%s: it did not wait for all parts", form)
					}
					if d := time.Since(started); d != c.takes {
						t.Errorf("%s: it took %s, not %s", form, d, c.takes)
					}
					if len(c.is) == 0 && err != nil {
						t.Errorf("%s: the error is %v", form, err)
					}
					for _, want := range c.is {
						if !errors.Is(err, want) {
							t.Errorf("%s: the error is %v", form, err)
						}
					}
					if err != nil && strings.Contains(err.Error(), "interrupted") {
						t.Errorf("%s: the end of the context is reported as an error: %v", form, err)
					}
				})
			}
		})
	}
}

func TestRunEndsWhenAllAreDone(t *testing.T) {
	t.Parallel()
	done := part(func(context.Context) error { return nil })
	if err := Run(t.Context(), noServer(), done, done); err != nil {
		t.Error(err)
	}
}

// A program with everything that can hold up its end took 32 s: a Pod has 30 s.
func TestEndOfAProgramThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := gadgetServer{open: make(chan struct{})}
		close(server.open)
		client := kube.NewClientFromHandler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Resource.Group == "events.k8s.io" {
				<-ctx.Done() // the server hangs
				return nil, context.Cause(ctx)
			}
			return server.Do(ctx, r)
		}))
		recorder := events.New("example.com/gadgets")
		begun, release := make(chan struct{}), make(chan struct{})
		part := controller.New(func(_ context.Context, g *gadget, _ *kube.Client) (controller.Action, error) {
			recorder.Normal(g, "Begun", "Begin", "it has begun")
			close(begun)
			<-release // it ignores its context
			return controller.Done(), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Run(ctx, client, part, recorder) }()
		<-begun
		started := time.Now()
		cancel()
		err := <-ended
		if took := time.Since(started) + shutdownTimeout; took > 25*time.Second {
			t.Errorf("it took %s to end", took)
		}
		if err == nil || !strings.Contains(err.Error(), "did not return") {
			t.Errorf("the error is %v", err)
		}
		close(release)
	})
}

// The controllers of a program record events about objects that fail by the recorder of the program.
func TestRecorderOfAProgram(t *testing.T) {
	t.Parallel()
	recorder := events.New("gadgets")
	watcher := Watcher[gadget](func(context.Context, *kube.Client) error { return nil })
	for name, parts := range map[string][]Part{"with": {watcher, recorder}, "without": {watcher}} {
		brought, err := newRunFeatures(t.Context(), noServer(), parts)
		if err != nil {
			t.Fatal(err)
		}
		r := newPartsRun(noServer(), environment{log: slog.New(slog.DiscardHandler), features: brought}, parts, func() {})
		defer r.cache.Close()
		if got := r.runtime.Events; (got == recorder) != (name == "with") {
			t.Errorf("%s a recorder: %v", name, got)
		}
	}
}
