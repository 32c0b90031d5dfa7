package controller_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

func isList(r *wire.Request) bool { return r.Verb == wire.VerbList && r.Resource.Plural == "plants" }

func labelledPlant(name, bed string) *Plant {
	p := plant(name)
	p.Labels = map[string]string{"bed": bed}
	return p
}

// namesOf returns the names of objects, sorted.
func namesOf(plants []*Plant) string {
	var names []string
	for _, p := range plants {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// A list through a watch with controller.Select was a request in each reconcile, without a word, and an error in a map
// function, even by the selectors of the watch.
func TestListWithinTheSelectorsOfAWatchIsNoRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		for name, bed := range map[string]string{"fern": "north", "ivy": "north", "moss": "west", "rose": "south"} {
			create(t, c, labelledPlant(name, bed))
		}
		north, shady := kube.Label("bed", "north"), kube.LabelIn("bed", "north", "west")
		lists := func(ctx context.Context, c *kube.Client, selectors ...kube.Selector) string {
			plants, err := kube.Namespaced[Plant](c, "default").List(ctx, selectors...)
			if err != nil {
				t.Error(err)
			}
			return namesOf(plants)
		}
		var calls journal
		steps := make(map[string]func(context.Context, *Garden, *kube.Client))
		names := make(chan kube.Key)
		create(t, c, &corev1.ConfigMap{ObjectMeta: plant("map").ObjectMeta})
		p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if step := steps[g.Name]; step != nil {
				step(ctx, g, c)
			}
			return controller.Done(), nil
		}, controller.Channel(names), controller.Owns[Plant](controller.Select(shady)),
			controller.Watches(func(ctx context.Context, _ *corev1.ConfigMap, c *kube.Client) ([]kube.Key, error) {
				calls.record("mapped: " + lists(ctx, c, north))
				return nil, nil
			})))
		synctest.Wait()
		before := s.count(isList)
		s.Stream(fakeserver.StreamID{Plural: "plants", LabelSelector: "bed in (north,west)"}).Freeze()
		reconcile := func(name string, step func(context.Context, *Garden, *kube.Client)) {
			steps[name] = step
			create(t, c, garden(name))
			synctest.Wait()
		}
		reconcile("first", func(ctx context.Context, g *Garden, c *kube.Client) {
			calls.record("all: " + lists(ctx, c, shady))
			calls.record("north: " + lists(ctx, c, north))
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, labelledPlant("lily", "north"))); err != nil {
				t.Error(err)
			}
			calls.record("after a plant was added: " + lists(ctx, c, north))
			patch := kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"bed": "south"}}})
			if _, err := kube.Namespaced[Plant](c, "default").Patch(ctx, "ivy", patch); err != nil {
				t.Error(err)
			}
			patch = kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"bed": "west"}}})
			if _, err := kube.Namespaced[Plant](c, "default").Patch(ctx, "rose", patch); err != nil {
				t.Error(err)
			}
			if err := kube.Namespaced[Plant](c, "default").Delete(ctx, "fern"); err != nil {
				t.Error(err)
			}
			calls.record("after all: " + lists(ctx, c, shady))
			calls.record("north: " + lists(ctx, c, north))
		})
		if n := s.count(isList) - before; n != 0 {
			t.Errorf("%d lists were requests", n)
		}
		want := []string{
			"mapped: fern ivy", "all: fern ivy moss", "north: fern ivy", "after a plant was added: fern ivy lily",
			"after all: lily moss rose", "north: lily",
		}
		if diff := cmp.Diff(want, calls.drain()); diff != "" {
			t.Errorf("the lists (-want +got):\n%s", diff)
		}
		if lines := p.log.lines(slog.LevelWarn); len(lines) > 0 {
			t.Errorf("the log: %q", lines)
		}
		time.Sleep(10 * time.Second)
		for _, name := range []string{"second", "third"} {
			reconcile(name, func(ctx context.Context, _ *Garden, c *kube.Client) {
				calls.record("everything: " + lists(ctx, c))
				calls.record("live: " + lists(ctx, c.Live(), shady))
			})
		}
		want = slices.Repeat([]string{"everything: ivy lily moss rose", "live: lily moss rose"}, 2)
		if diff := cmp.Diff(want, calls.drain()); diff != "" {
			t.Errorf("the lists (-want +got):\n%s", diff)
		}
		if lines := p.log.lines(slog.LevelWarn); len(lines) != 1 || !strings.Contains(lines[0], "a list of a reconcile is a request each time") {
			t.Errorf("the log: %q", lines)
		}
	})
}
