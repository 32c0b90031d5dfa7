package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A reconcile skipped its apply because the store of another controller showed a state that the
// restoration of a backup had undone. The stream that was listed anew concerned the other
// controller only, so the drift stayed.
func TestRestorationIsReconciled(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		// The garden's controller sees only the plants of its selection. The other one sees all.
		start(t, c,
			controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
				_, err := kube.Apply(ctx, c, kube.OwnedBy(g, rose(1)))
				return controller.Done(), err
			}, controller.Owns[Plant](controller.Select(kube.Label("tier", "y")))),
			bystander(watches(func(*Plant) []kube.Key { return nil })))
		time.Sleep(time.Minute)
		backup := s.Snapshot()
		s.Advance(1000)
		all := s.Stream(fakeserver.StreamID{Plural: "plants"})
		all.Bookmark()
		synctest.Wait()
		s.Restore(backup)
		// The watches are open again, and nobody knows of the restoration.
		time.Sleep(5 * time.Second)
		if _, err := kube.Namespaced[Plant](c, "default").Patch(t.Context(), "rose",
			kube.MergePatch(map[string]any{"spec": map[string]any{"height": 9}})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if got := s.object("plants", "default", "rose")["spec"]; got.(object)["height"] != int64(1) {
			t.Errorf("the rose is %v, want the height 1", got)
		}
	})
}

// Regression: a server has just come back from a backup. A store waits for its list, and is not read. All objects were
// reconciled meanwhile, and each reconcile read the server. Reconciles that somebody waits for do read the server.
func TestReconcilesOfLowPriorityWaitForTheListsAfterARestoration(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		const gardens = 50
		for i := range gardens {
			create(t, c, garden(fmt.Sprint("g", i)))
			create(t, c, plant(fmt.Sprint("g", i)))
		}
		var mu sync.Mutex
		reconciled := make(map[string]int)
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			mu.Lock()
			reconciled[g.Name]++
			mu.Unlock()
			_, err := kube.Namespaced[Plant](c, "default").Get(ctx, g.Name)
			return controller.Done(), err
		}, watches(func(*Plant) []kube.Key { return nil })))
		time.Sleep(time.Minute)
		backup := s.Snapshot()
		lost := kube.MergePatch(map[string]any{"spec": map[string]any{"size": 7}})
		if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "g1", lost); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mu.Lock()
		clear(reconciled)
		mu.Unlock()
		s.Restore(backup)
		s.Advance(1000) // the stream of the plants finds nothing by itself
		reads := func() int {
			return s.count(func(r *wire.Request) bool { return r.Verb == wire.VerbGet && r.Resource.Plural == "plants" })
		}
		lists := func(plural string) (n int) {
			for _, stream := range s.watches() {
				if stream == plural {
					n++
				}
			}
			return n
		}
		for restored := time.Now(); lists("gardens") < 2; time.Sleep(time.Millisecond) {
			if time.Since(restored) > time.Minute {
				t.Fatal("the gardens are not listed")
			}
		}
		synctest.Wait()
		if lists("plants") != 1 {
			t.Fatal("the plants are listed at the same moment as the gardens")
		}
		if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "g2", lost); err != nil {
			t.Fatal(err)
		}
		var waiting []string
		for listed := time.Now(); lists("plants") < 2; time.Sleep(time.Millisecond) {
			if time.Since(listed) > 2*time.Minute {
				t.Fatal("the plants are not listed")
			}
			mu.Lock()
			waiting = slices.Sorted(maps.Keys(reconciled))
			mu.Unlock()
		}
		// The list of the gardens shows that g1 has changed.
		if !slices.Equal(waiting, []string{"g1", "g2"}) || reads() != 2 {
			t.Errorf("while the store waits, %v are reconciled with %d reads of the server, want g1 and g2 with one each", waiting, reads())
		}
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(reconciled) != gardens || reads() != 2 {
			t.Errorf("after the list, %d gardens are reconciled with %d more reads of the server", len(reconciled), reads()-2)
		}
	})
}

// Regression: after a restoration one source could not be listed, because a right was older than the backup. All reconciles of
// low priority of the controller waited for ever, and no log line said so.
func TestRestorationWithASourceThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		client  func(*kube.Client) *kube.Client
		options []controller.Option
		// isForbidden reports whether a request is refused after the restoration.
		isForbidden func(*wire.Request) bool
	}{
		"a kind": {
			func(c *kube.Client) *kube.Client { return c }, []controller.Option{controller.Owns[Plant]()},
			func(r *wire.Request) bool { return r.Resource.Plural == "plants" },
		},
		"a namespace": {
			func(c *kube.Client) *kube.Client { return c.InNamespaces("default", "other") }, nil,
			func(r *wire.Request) bool { return r.Namespace == "other" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				var calls atomic.Int64
				var isRestored, isRepaired atomic.Bool
				create(t, c, garden("eden"))
				create(t, c, garden("hortus"))
				s.before = func(r *wire.Request) error {
					if isRestored.Load() && !isRepaired.Load() && test.isForbidden(r) {
						return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden)
					}
					return nil
				}
				p := start(t, test.client(c), controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
					calls.Add(1)
					return controller.Done(), nil
				}, append(test.options, controller.Every(time.Hour))...))
				time.Sleep(time.Minute)
				backup := s.Snapshot()
				lost := kube.MergePatch(map[string]any{"spec": map[string]any{"size": 7}})
				if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "eden", lost); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				isRestored.Store(true)
				for f := range s.feeds {
					f.end()
				}
				synctest.Wait()
				s.Restore(backup)
				s.Advance(1000)
				calls.Store(0)
				time.Sleep(10 * time.Minute)
				if n := calls.Swap(0); n < 2 {
					t.Errorf("%d reconciles within ten minutes after the restoration, want one of each of two gardens", n)
				}
				time.Sleep(24 * time.Hour)
				if n := calls.Swap(0); n < 40 {
					t.Errorf("%d reconciles of two gardens within a day, with a resync each hour", n)
				}
				if lines := p.log.lines(slog.LevelWarn); len(lines) != 1 || !strings.Contains(lines[0], "could not be listed since") {
					t.Errorf("warnings: %q", lines)
				}
				isRepaired.Store(true)
				time.Sleep(10 * time.Minute)
				if n := calls.Load(); n < 2 {
					t.Errorf("%d reconciles once the source is listed, want one of each of two gardens", n)
				}
			})
		})
	}
}

// Regression: reconciles of low priority waited for a kind that could not be listed for up to a minute more than five
// minutes, because the end of the wait was looked for once a minute.
func TestLowReconcilesWaitForFiveMinutesAtMost(t *testing.T) {
	t.Parallel()
	for name, electedAfter := range map[string]time.Duration{
		"leader": 0, "elected during the wait": 2*time.Minute + 10*time.Second,
		"elected at the end of the wait": 4*time.Minute + 30*time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				create(t, c, garden("eden"))
				create(t, c, garden("hortus"))
				var mu sync.Mutex
				reconciled := make(map[string]bool)
				elected := make(chan struct{})
				if electedAfter == 0 {
					close(elected)
				}
				caches := cache.New(c)
				defer caches.Close()
				gardener := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
					mu.Lock()
					defer mu.Unlock()
					reconciled[g.Name] = true
					return controller.Done(), nil
				}, controller.Owns[Plant]())
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() {
					ended <- gardener.Start(ctx, &controller.Runtime{
						Client: c, Cache: caches, Log: slog.New(slog.DiscardHandler), Elected: elected,
					})
				}()
				time.Sleep(time.Minute)
				s.restoreWithout(t, c, "plants")
				gardenLists := func() (n int) {
					for _, stream := range s.watches() {
						if stream == "gardens" {
							n++
						}
					}
					return n
				}
				for gardenLists() < 2 {
					time.Sleep(time.Millisecond)
				}
				found := time.Now()
				mu.Lock()
				clear(reconciled)
				mu.Unlock()
				if electedAfter > 0 {
					time.Sleep(electedAfter)
					close(elected)
				}
				time.Sleep(time.Until(found.Add(5*time.Minute - 2*time.Second)))
				mu.Lock()
				if reconciled["hortus"] {
					t.Error("hortus is reconciled before the end of the wait")
				}
				mu.Unlock()
				time.Sleep(4 * time.Second)
				mu.Lock()
				if !reconciled["hortus"] {
					t.Error("hortus is not reconciled after the wait")
				}
				mu.Unlock()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Regression: a namespace that could not be listed when the program started is left out. After each restoration all
// reconciles of low priority waited for its list for five minutes.
func TestRestorationWithANamespaceThatIsLeftOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, garden("hortus"))
		s.before = func(r *wire.Request) error {
			if r.Namespace == "other" {
				return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden)
			}
			return nil
		}
		var calls atomic.Int64
		p := start(t, c.InNamespaces("default", "other"),
			controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
				calls.Add(1)
				return controller.Done(), nil
			}, controller.Every(time.Hour)))
		time.Sleep(5 * time.Minute)
		s.restoreWithout(t, c, "")
		calls.Store(0)
		time.Sleep(2 * time.Minute)
		if n := calls.Load(); n < 2 {
			t.Errorf("%d reconciles within two minutes after the restoration, want one of each of two gardens", n)
		}
		time.Sleep(10 * time.Minute)
		if lines := p.log.lines(slog.LevelWarn); len(lines) > 0 {
			t.Errorf("warnings: %q", lines)
		}
	})
}

// restoreWithout restores the server to before a change of the garden eden, and ends its watches. The server passes the
// version of the change at once. From then on it refuses all requests about a resource.
func (s *server) restoreWithout(t *testing.T, c *kube.Client, plural string) {
	t.Helper()
	backup := s.Snapshot()
	lost := kube.MergePatch(map[string]any{"spec": map[string]any{"size": 7}})
	if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "eden", lost); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	s.mu.Lock()
	before := s.before
	s.before = func(r *wire.Request) error {
		if r.Resource.Plural == plural {
			return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		if before != nil {
			return before(r)
		}
		return nil
	}
	s.mu.Unlock()
	for f := range s.feeds {
		f.end()
	}
	synctest.Wait()
	s.Restore(backup)
	s.Advance(1000)
}
