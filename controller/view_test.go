package controller_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// plantWatch identifies a stream of plants.
type plantWatch struct {
	selector string
	form     wire.Representation
}

// refuseWatches makes the server answer the opening of each watch in refused with its code, and ends
// the watches that are open. Later calls replace earlier ones.
func (s *server) refuseWatches(refused map[plantWatch]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(r *wire.Request) error {
		if r.Verb != wire.VerbWatch || r.Resource.Plural != "plants" {
			return nil
		}
		switch code := refused[plantWatch{canonical(r.Query.Get("labelSelector")), r.Representation}]; {
		case code == http.StatusGone && r.Query.Get("resourceVersion") != "":
			return refuse(r, code, metav1.StatusReasonExpired)
		case code != 0 && code != http.StatusGone:
			return refuse(r, code, metav1.StatusReasonUnknown)
		}
		return nil
	}
	for f := range s.feeds {
		w := plantWatch{selector: f.selector.String()}
		if f.metadata {
			w.form = wire.MetadataOnly
		}
		if f.plural == "plants" && refused[w] != 0 {
			f.end()
		}
	}
}

func canonical(selector string) string {
	parsed, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return parsed.String()
}

// rose returns the plant that these tests are about.
func rose(height int) *Plant {
	p := plant("rose")
	p.Labels = map[string]string{"app": "x", "tier": "y"}
	p.Spec.Height = height
	return p
}

// rosarian returns a controller that reads and applies a rose of height 1 for each garden. It
// records the heights that it read; 0 stands for no rose.
func rosarian(heights *journal, options ...controller.Option) *controller.Controller[Garden] {
	return controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		p, err := kube.Get[Plant](ctx, c, "default", "rose")
		switch {
		case err == nil:
			heights.record(strconv.Itoa(p.Spec.Height))
		case kube.IsNotFound(err):
			heights.record("0")
		default:
			return controller.Done(), err
		}
		_, err = kube.Apply(ctx, c, kube.OwnedBy(g, rose(1)))
		return controller.Done(), err
	}, options...)
}

// bystander returns a controller that only keeps a stream open.
func bystander(option controller.Option) *controller.Controller[Country] {
	return controller.New(func(context.Context, *Country, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}, option)
}

// Regression: a reconcile was triggered by one stream, and its read and its no-op check were
// answered from the store of another stream, which was behind. The apply was skipped, and the
// drift stayed: when the other stream caught up, nobody reconciled again.
func TestReconcileUsesNoStoreThatIsBehindItsTrigger(t *testing.T) {
	t.Parallel()
	all, x, y := plantWatch{}, plantWatch{selector: "app=x"}, plantWatch{selector: "tier=y"}
	metadata := plantWatch{form: wire.MetadataOnly}
	watching := func(w plantWatch) controller.Option {
		switch {
		case w.form == wire.MetadataOnly:
			return watchesPlantMetadata()
		case w.selector != "":
			return controller.Owns[Plant](controller.Select(kube.ParseLabels(w.selector)))
		default:
			return controller.Owns[Plant]()
		}
	}
	grow := func(t *testing.T, c *kube.Client) { apply(t, c, rose(7)) }
	deletion := func(t *testing.T, c *kube.Client) { remove(t, c, rose(1)) }
	relabel := func(t *testing.T, c *kube.Client) {
		p := rose(7)
		p.Labels["app"] = "z"
		apply(t, c, p)
	}
	for name, test := range map[string]struct {
		own, other plantWatch
		change     func(*testing.T, *kube.Client)
		// relist is true if the own stream learns of the change from a list.
		relist bool
		want   int
	}{
		"a selection, and all":               {own: x, other: all, change: grow, want: 7},
		"all, and a selection":               {own: all, other: x, change: grow, want: 7},
		"two selections":                     {own: x, other: y, change: grow, want: 7},
		"metadata, and whole objects":        {own: metadata, other: all, change: grow, want: 7},
		"a deletion":                         {own: x, other: all, change: deletion, want: 0},
		"a deletion, of two selections":      {own: x, other: y, change: deletion, want: 0},
		"a deletion that a list finds":       {own: x, other: all, change: deletion, relist: true, want: 0},
		"a change that a list finds":         {own: x, other: all, change: grow, relist: true, want: 7},
		"a selector that matches no longer":  {own: x, other: all, change: relabel, want: 7},
		"the same, and two selections":       {own: x, other: y, change: relabel, want: 7},
		"the same, and a list that finds it": {own: x, other: all, change: relabel, relist: true, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var heights journal
				c := s.client()
				create(t, c, garden("eden"))
				start(t, c, bystander(watching(test.other)), rosarian(&heights, watching(test.own)))
				time.Sleep(10 * time.Second)

				if test.relist {
					s.refuseWatches(map[plantWatch]int{test.other: http.StatusServiceUnavailable, test.own: http.StatusServiceUnavailable})
				} else {
					s.refuseWatches(map[plantWatch]int{test.other: http.StatusServiceUnavailable})
				}
				synctest.Wait()
				heights.drain()
				test.change(t, c)
				if test.relist {
					s.refuseWatches(map[plantWatch]int{test.other: http.StatusServiceUnavailable, test.own: http.StatusGone})
				}
				time.Sleep(10 * time.Second)
				if got := heights.drain(); !slices.Contains(got, strconv.Itoa(test.want)) {
					t.Errorf("the reconcile that the change triggered read %v, want %d", got, test.want)
				}
				s.refuseWatches(nil)
				time.Sleep(time.Hour)
				if o := s.object("plants", "default", "rose"); o == nil || o["spec"].(object)["height"] != int64(1) {
					t.Errorf("an hour later the rose is %v: the apply of height 1 was skipped", o)
				}
			})
		})
	}
}

// watchesPlantMetadata triggers the garden eden.
func watchesPlantMetadata() controller.Option {
	r := kube.Everywhere[Plant](kube.NewClientFromHandler(nil)).Resource()
	return watchesMetadata(r, func(m *metav1.PartialObjectMetadata) []kube.Key {
		return []kube.Key{{Namespace: m.Namespace, Name: "eden"}}
	})
}

// A change in one namespace does not make reads in another one live, although the stream that
// answers them has not seen it.
func TestReadsAreAsNewAsTheChangesOfTheirNamespaceOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		lily := plant("lily") // only the stream of all plants has it
		create(t, c, lily)
		far := rose(1)
		far.Namespace = "far"
		create(t, c, far)
		var reconciles atomic.Int32
		gardens := controller.New(func(ctx context.Context, _ *Garden, c *kube.Client) (controller.Action, error) {
			reconciles.Add(1)
			_, err := kube.Get[Plant](ctx, c, "default", "lily")
			return controller.RequeueAfter(time.Minute), err
		}, controller.Owns[Plant](controller.Select(kube.ParseLabels("app=x"))))
		start(t, c, bystander(controller.Owns[Plant]()), gardens)
		time.Sleep(10 * time.Second)
		s.refuseWatches(map[plantWatch]int{{}: http.StatusServiceUnavailable})
		synctest.Wait()
		reads := func(r *wire.Request) bool { return r.Verb == wire.VerbGet && r.Resource.Plural == "plants" }
		check := func(what string, live bool) {
			t.Helper()
			before := s.count(reads)
			reconciles.Store(0)
			time.Sleep(5 * time.Minute)
			n := int(reconciles.Load())
			if got := s.count(reads) - before; n == 0 || (got == n) != live || !live && got > 0 {
				t.Errorf("%s: %d reconciles made %d reads", what, n, got)
			}
		}
		check("before a change", false)
		far.Spec.Height = 7
		apply(t, c, far)
		check("after a change in another namespace", false)
		apply(t, c, rose(7))
		check("after a change in this namespace", true)
		s.refuseWatches(nil)
		time.Sleep(10 * time.Minute)
		check("once the stream has caught up", false)
	})
}

// Regression: a stream was synced once, and its watch was refused since. Its store went on to
// answer, and every apply was skipped by what it had known a day before.
func TestApplyIsSentWhileTheWatchIsDead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		var reconciles atomic.Int32
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			reconciles.Add(1)
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, rose(1)))
			return controller.RequeueAfter(time.Minute), err
		}, controller.Owns[Plant]()))
		time.Sleep(10 * time.Second)
		applies := func(r *wire.Request) bool { return r.Verb == wire.VerbPatch && r.Resource.Plural == "plants" }
		before := s.count(applies)
		time.Sleep(10 * time.Minute)
		if sent := s.count(applies) - before; sent > 0 {
			t.Errorf("at rest %d applies were sent", sent)
		}
		s.refuseWatches(map[plantWatch]int{{}: http.StatusForbidden})
		time.Sleep(time.Second)
		apply(t, c, rose(7)) // somebody
		reconciles.Store(0)
		time.Sleep(2 * time.Minute)
		if h := s.object("plants", "default", "rose")["spec"].(object)["height"]; reconciles.Load() == 0 || h != int64(1) {
			t.Errorf("after %d reconciles, each of which applied 1, the rose is %v high", reconciles.Load(), h)
		}
		s.refuseWatches(nil)
		time.Sleep(10 * time.Minute)
		before = s.count(applies)
		time.Sleep(10 * time.Minute)
		if sent := s.count(applies) - before; sent > 0 {
			t.Errorf("once the watch is open again, %d applies were sent", sent)
		}
	})
}

// With Client.Live, a reconcile asks the server: its reads, and an apply that would change nothing,
// are sent. Without it, neither is sent.
func TestLiveClientInAReconcile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		var live atomic.Bool
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if live.Load() {
				c = c.Live()
			}
			if _, err := kube.Get[Garden](ctx, c, g.Namespace, g.Name); err != nil {
				return controller.Done(), err
			}
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, rose(1)))
			return controller.RequeueAfter(time.Minute), err
		}, controller.Owns[Plant]()))
		time.Sleep(90 * time.Second)
		sent := func() [2]int {
			reads := s.count(func(r *wire.Request) bool { return r.Verb == wire.VerbGet && r.Resource.Plural == "gardens" })
			return [2]int{reads, s.count(func(r *wire.Request) bool { return r.Verb == wire.VerbPatch && r.Resource.Plural == "plants" })}
		}
		before := sent()
		time.Sleep(time.Minute)
		if now := sent(); now != before {
			t.Errorf("reads and applies sent: %v before, and %v after a reconcile that reads the cache", before, now)
		}
		live.Store(true)
		time.Sleep(time.Minute)
		if now := sent(); now != [2]int{before[0] + 1, before[1] + 1} {
			t.Errorf("reads and applies sent: %v before, and %v after a live reconcile", before, now)
		}
	})
}
