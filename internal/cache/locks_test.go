package cache

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: an index function and the function of OnError ran while the store, or the stream,
// was locked. A function that read the cache, or waited for a reader of the cache, hung the
// stream.
func TestTheAuthorsFunctionsRunWithoutLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newServer(webApps.Resource)
		var c *Cache
		var sub *Subscription
		ready := make(chan struct{})
		// join subscribes once more, and waits until that is synced.
		join := func() {
			<-ready
			synced := make(chan struct{})
			other := open(t, t.Context(), c, webApps, func(c Change) {
				if c.Type == Synced {
					close(synced)
				}
			})
			<-synced
			other.Close()
			sub.Store().IndexLabel("team")
		}
		var reported atomic.Int32
		c = New(server, OnError(func(wire.Stream, error) { reported.Add(1); join() }))
		defer c.Close()
		server.put(a, small(a, "1", ""))
		sub = open(t, t.Context(), c, webApps, func(Change) {})
		close(ready)
		synctest.Wait()
		// Two indexes whose functions read the store, one of them added by the other's function
		// while a change is on its way.
		var indexed atomic.Int32
		second := kube.NewIndex("second", func(*samples.WebApp) []string { indexed.Add(1); sub.Store().Len(); panic("no value") })
		var added atomic.Bool
		first := kube.NewIndex("first", func(w *samples.WebApp) []string {
			if w.Name == "b" && !added.Swap(true) {
				go func() {
					if err := sub.Store().Index(second); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
			}
			sub.Store().Len()
			return []string{"x"}
		})
		if err := sub.Store().Index(first); err != nil {
			t.Fatal(err)
		}
		server.put(b, small(b, "2", ""))
		synctest.Wait()
		if got := sub.Store().Len(); got != 2 || indexed.Load() == 0 || reported.Load() == 0 {
			t.Errorf("%d objects, %d calls of the second function, %d reports", got, indexed.Load(), reported.Load())
		}
	})
}
