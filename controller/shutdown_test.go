package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 18: at the end no work is begun; what is under way goes on undisturbed, cached
// reads included, and its context ends with the grace.
func TestShutdown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("quick"))
		create(t, c, garden("slow"))
		create(t, c, garden("waits"))
		p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record(g.Name + " begins")
			switch g.Name {
			case "quick":
				time.Sleep(10 * time.Second)
				if _, err := kube.Get[Garden](ctx, c, "default", "slow"); err != nil {
					t.Error(err)
				}
			case "slow":
				<-ctx.Done()
			}
			calls.record(g.Name + " ends")
			return controller.Done(), ctx.Err()
		}, controller.Concurrency(2), controller.ShutdownGrace(15*time.Second)))
		time.Sleep(5 * time.Second)
		begin, gets := time.Now(), s.count(isGet)
		if errs := p.stop(); len(errs) > 0 {
			t.Error(errs)
		}
		if got := time.Since(begin); got != 15*time.Second {
			t.Errorf("it took %s to end, want 15s", got)
		}
		if s.count(isGet) > gets {
			t.Error("within the grace a read was not served by the cache")
		}
		if got := strings.Join(calls.drain(), ", "); got != "quick begins, slow begins, quick ends, slow ends" &&
			got != "slow begins, quick begins, quick ends, slow ends" {
			t.Errorf("calls: %s", got)
		}
	})
}

func isGet(r *wire.Request) bool { return r.Verb == wire.VerbGet }

// Promise 18: a call that ignores its context does not keep the program from ending, and
// can do no more harm.
func TestShutdownWithACallThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		late := make(chan error, 1)
		p := start(t, c, controller.New(func(_ context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			time.Sleep(time.Hour)
			_, err := kube.Apply(context.Background(), c, plant("late"))
			late <- err
			return controller.Done(), err
		}, controller.ShutdownGrace(time.Minute)))
		synctest.Wait()
		begin := time.Now()
		errs := p.stop()
		if got := time.Since(begin); got != 63*time.Second {
			t.Errorf("it took %s to end, want 1m3s", got)
		}
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "1 calls") {
			t.Errorf("errors: %v, want one that counts the calls", errs)
		}
		if err := <-late; err == nil || s.object("plants", "default", "late") != nil {
			t.Errorf("a write after the end was sent (%v)", err)
		}
		p.stop = func() []error { return nil }
	})
}

// A program that is ended before everything is synced ends at once.
func TestShutdownBeforeSync(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		s.unsynced["gardens"] = true
		p := start(t, s.client(), controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), errors.New("never")
		}))
		synctest.Wait()
		begin := time.Now()
		if errs := p.stop(); len(errs) > 0 || time.Since(begin) > 0 {
			t.Errorf("it ended after %s with %v", time.Since(begin), errs)
		}
	})
}
