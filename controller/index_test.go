package controller_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// bySoil finds gardens by the ConfigMaps that their annotations name.
func bySoil() *kube.Index {
	return kube.NewIndex("soil", func(g *Garden) []string { return []string{g.Annotations["soil"], g.Annotations["water"]} })
}

// What an object refers to runs its reconcile: by a name in its own namespace, or by one
// with a namespace before it; from when it refers to it on, and no longer.
func TestWatchesReferenced(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		soil := func(namespace, name string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		}
		refer := func(name, soil, water string) *Garden {
			g := garden(name)
			g.Annotations = map[string]string{"soil": soil, "water": water}
			return g
		}
		create(t, c, soil("default", "clay"))
		create(t, c, refer("eden", "clay", "elsewhere/well"))
		create(t, c, refer("hortus", "peat", "elsewhere/well"))
		start(t, c, controller.New(recordingNames(&calls), controller.WatchesReferenced[corev1.ConfigMap](bySoil())))
		synctest.Wait()
		calls.drain()
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			got := calls.drain()
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: reconciled (-want +got):\n%s", what, diff)
			}
		}
		touch := func(m *corev1.ConfigMap) {
			m.Data = map[string]string{"touched": m.Data["touched"] + "x"}
			apply(t, c, m)
		}
		touch(soil("default", "clay"))
		expect("clay", "eden")
		create(t, c, soil("default", "peat"))
		expect("peat", "hortus")
		create(t, c, soil("elsewhere", "peat"))
		expect("peat of another namespace")
		create(t, c, soil("elsewhere", "well"))
		expect("well", "eden", "hortus")
		apply(t, c, refer("eden", "sand", ""))
		expect("eden", "eden")
		remove(t, c, soil("elsewhere", "well"))
		expect("well, which eden left", "hortus")
		create(t, c, soil("default", "sand"))
		expect("sand", "eden")
	})
}

// Lists from a reconcile: by owner, by index and by label, without any request.
func TestListsFromTheCache(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		byHeight := kube.NewIndex("height", func(p *Plant) []string { return []string{string(rune('0' + p.Spec.Height))} })
		eden := create(t, c, garden("eden"))
		for i, name := range []string{"rose", "fern", "moss"} {
			p := plant(name)
			p.Spec.Height = i
			p.Labels = map[string]string{"bed": string(rune('a' + i%2))}
			create(t, c, kube.OwnedBy(eden, p))
		}
		create(t, c, plant("weed"))
		var found []string
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			found = nil
			for _, selectors := range [][]kube.Selector{
				{kube.OwnerIs(g)}, {byHeight.Is("1")}, {byHeight.Is("1"), kube.OwnerIs(g)}, {kube.Label("bed", "a"), kube.OwnerIs(g)},
			} {
				plants, err := kube.Namespaced[Plant](c, g.Namespace).List(ctx, selectors...)
				if err != nil {
					return controller.Done(), err
				}
				var names []string
				for _, p := range plants {
					names = append(names, p.Name)
				}
				slices.Sort(names)
				found = append(append(found, names...), ".")
			}
			return controller.Done(), nil
		}
		start(t, c, controller.New(reconcile, controller.Owns[Plant](controller.Index(byHeight), controller.IndexLabels("bed"))))
		synctest.Wait()
		if diff := cmp.Diff([]string{"fern", "moss", "rose", ".", "fern", "weed", ".", "fern", ".", "moss", "rose", "."}, found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		if n := s.count(func(r *wire.Request) bool { return r.Verb == wire.VerbList }); n > 0 {
			t.Errorf("%d lists were sent", n)
		}
	})
}

// Promises 7 and 8 for a controller that selects: it reads what it selects from its own
// stream, and sends no status that is there already.
func TestSelectedObjectsAreReadFromTheCache(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		g := garden("mine")
		g.Labels = map[string]string{"gardener": "me"}
		create(t, c, g)
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			p := plant(g.Name)
			p.Labels = g.Labels
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, p)); err != nil {
				return controller.Done(), err
			}
			g.Status.Size = g.Spec.Size
			return controller.Done(), c.ApplyStatus(ctx, g)
		}
		mine := controller.Select(kube.Label("gardener", "me"))
		names := make(chan kube.Key, 1)
		start(t, c, controller.New(reconcile, controller.Reconciled(mine), controller.Owns[Plant](mine), controller.Channel(names)))
		synctest.Wait()
		calls.drain()
		writes := func() int { return s.count(func(r *wire.Request) bool { return r.Verb.IsWrite() }) }
		before := writes()
		for range 3 {
			names <- kube.Key{Namespace: "default", Name: "mine"}
			synctest.Wait()
		}
		if n := len(calls.drain()); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		if n := writes() - before; n > 0 {
			t.Errorf("%d writes that change nothing were sent", n)
		}
		// The stream does not show whether there is a Plant that it does not select.
		if n := s.count(isGet); n > 1 {
			t.Errorf("%d reads were sent, want one, before the Plant was applied", n)
		}
	})
}
