package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

// queueStats receives the stats of queues.
type queueStats struct {
	mu sync.Mutex
	of func() controller.QueueStats
}

func (f *queueStats) Subscribed(_ string, of func() controller.QueueStats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of = of
}

func (f *queueStats) Result(controller.Result) {}

// Regression: the queue of a replica that does not lead kept the key of each object that was ever created.
func TestQueueOfAStandbyDoesNotGrow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		caches := cache.New(c)
		ctx, cancel := context.WithCancel(context.Background())
		f := new(queueStats)
		ended := make(chan error, 1)
		part := controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Owns[Plant]())
		go func() {
			ended <- part.Start(ctx, &controller.Runtime{
				Client: c, Cache: caches, Observer: f, Log: slog.New(slog.DiscardHandler), Elected: make(chan struct{}),
			})
		}()
		synctest.Wait()
		const n = 5000
		for i := range n {
			g := garden(fmt.Sprintf("g-%d", i))
			create(t, c, g)
			synctest.Wait()
			remove(t, c, garden(g.Name))
			synctest.Wait()
		}
		f.mu.Lock()
		got := f.of()
		f.mu.Unlock()
		if got.Ready > 100 {
			t.Errorf("%d objects were created and deleted, none exists, and %d keys wait in the queue of the standby", n, got.Ready)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		caches.Close()
	})
}

// Regression: a source of a controller cannot be listed, such as for want of a permission, so that the controller
// does not start. Its queue kept the key of each object that was ever created meanwhile.
func TestQueueDoesNotGrowWhileASourceIsNotSynced(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		s.mu.Lock()
		s.unsynced["plants"] = true
		s.mu.Unlock()
		caches := cache.New(c)
		ctx, cancel := context.WithCancel(context.Background())
		f := new(queueStats)
		ended := make(chan error, 1)
		part := controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Owns[Plant]())
		go func() {
			ended <- part.Start(ctx, &controller.Runtime{Client: c, Cache: caches, Observer: f, Log: slog.New(slog.DiscardHandler)})
		}()
		synctest.Wait()
		for i := range 2000 {
			create(t, c, garden(fmt.Sprint("g-", i)))
			synctest.Wait()
			remove(t, c, garden(fmt.Sprint("g-", i)))
			synctest.Wait()
		}
		f.mu.Lock()
		got := f.of()
		f.mu.Unlock()
		if got.Ready > 100 {
			t.Errorf("2000 objects were created and deleted, none exists, and %d keys wait in the queue", got.Ready)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		caches.Close()
	})
}
