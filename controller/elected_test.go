package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

// observed is an Observer of one controller.
type observed struct {
	journal
	figures func() controller.QueueStats
}

func (o *observed) Subscribed(_ string, figures func() controller.QueueStats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures = figures
}

func (o *observed) Result(r controller.Result) { o.result(r) }

func (o *observed) queue() controller.QueueStats {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.figures()
}

// A standby has synced its streams and knows what there is to do, and does nothing. Once it leads it
// reconciles the present objects. How long they waited for the election is not how long they waited
// for a worker.
func TestElected(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		caches := cache.New(c)
		defer caches.Close()
		elected := make(chan struct{})
		o := new(observed)
		rt := &controller.Runtime{Client: c, Cache: caches, Log: slog.New(slog.DiscardHandler), Observer: o, Elected: elected}
		gardener := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record(fmt.Sprint(g.Name, " ", g.Spec.Size))
			_, err := kube.Apply(ctx, c, plant(g.Name))
			return controller.Done(), err
		}, controller.Owns[Plant](), controller.From(func(ctx context.Context, _ func(controller.Trigger)) error {
			calls.record("source")
			<-ctx.Done()
			return nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- gardener.Start(ctx, rt) }()
		time.Sleep(time.Hour)
		changed := garden("eden")
		changed.Spec.Size = 7
		apply(t, c, changed)
		time.Sleep(time.Hour)
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("calls of a standby: %q", got)
		}
		// A standby showed all its objects as a backlog for ever.
		if f := o.queue(); f.Ready != 0 || f.Waiting != 1 || f.Oldest != 0 || f.Running != 0 {
			t.Errorf("the queue of a standby: %+v", f)
		}
		for _, stream := range caches.Stats() {
			if !stream.Synced {
				t.Errorf("%s is not synced", stream.Stream)
			}
		}
		close(elected)
		time.Sleep(time.Second)
		got := calls.drain()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"eden 7", "source"}, slices.Compact(got)); diff != "" {
			t.Errorf("calls of the leader (-want +got):\n%s", diff)
		}
		for _, r := range o.drainResults() {
			if r.Waited > time.Second {
				t.Errorf("an object has waited for a worker for %s", r.Waited)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}

		// A standby ends at once.
		ctx, cancel = context.WithCancel(t.Context())
		rt.Elected = make(chan struct{})
		go func() { ended <- gardener.Start(ctx, rt) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-ended; err != nil || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// The stats count the objects whose last reconcile failed and is retried: not those that only wait, not those whose failure is
// terminal, and not those that are gone.
func TestFailingObjectsAreCounted(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		for _, name := range []string{"bad", "worse", "good"} {
			create(t, c, garden(name))
		}
		caches := cache.New(c)
		defer caches.Close()
		o := new(observed)
		gardener := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			if g.Spec.Size > 2 {
				return controller.Done(), controller.Terminal(errors.New("too large"))
			}
			if g.Name != "good" && g.Spec.Size < 2 {
				return controller.Done(), errors.New("too small")
			}
			return controller.Done(), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- gardener.Start(ctx, &controller.Runtime{Client: c, Cache: caches, Log: slog.New(slog.DiscardHandler), Observer: o})
		}()
		expect := func(want int) {
			t.Helper()
			time.Sleep(time.Hour)
			if got := o.queue().Failing; got != want {
				t.Errorf("%d objects fail, want %d", got, want)
			}
		}
		expect(2)
		large := garden("bad")
		large.Spec.Size = 2
		apply(t, c, large)
		expect(1)
		large.Spec.Size = 3
		large.Name = "worse"
		apply(t, c, large)
		expect(0) // its failure is terminal
		apply(t, c, garden("worse"))
		expect(1)
		remove(t, c, garden("worse"))
		expect(0)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
