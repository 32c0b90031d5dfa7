package controller_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A controller reconciles, owns and watches kinds without a Go type: it adds a finalizer, is run by
// the changes of children and of watched objects, and reads all of them from the cache.
func TestKindsWithoutAGoType(t *testing.T) {
	t.Parallel()
	gardens, plants, countries := resourceOf[Garden](t), resourceOf[Plant](t), resourceOf[Country](t)
	for name, test := range map[string]struct {
		start func(t *testing.T, c *kube.Client, calls *journal)
	}{
		"unstructured": {func(t *testing.T, c *kube.Client, calls *journal) {
			start(t, c, untyped[unstructured.Unstructured](calls, gardens, plants, countries, kube.Dynamic))
		}},
		"metadata": {func(t *testing.T, c *kube.Client, calls *journal) {
			start(t, c, untyped[metav1.PartialObjectMetadata](calls, gardens, plants, countries, kube.Metadata))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				eden := create(t, c, garden("eden"))
				create(t, c, garden("hortus"))
				create(t, c, kube.OwnedBy(eden, plant("rose")))
				test.start(t, c, &calls)
				expect := func(what string, want ...string) {
					t.Helper()
					synctest.Wait()
					got := calls.drain()
					slices.Sort(got)
					if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
						t.Errorf("%s: calls (-want +got):\n%s", what, diff)
					}
				}
				expect("the start", "reconcile Garden eden [test.example.com/cleanup] 1", "reconcile Garden hortus [test.example.com/cleanup] 0")
				reads := s.count(isGet)
				create(t, c, kube.OwnedBy(eden, plant("fern")))
				expect("a child", "reconcile Garden eden [test.example.com/cleanup] 2")
				create(t, c, &Country{ObjectMeta: metav1.ObjectMeta{Name: "hortus"}})
				expect("a watched object", "reconcile Garden hortus [test.example.com/cleanup] 0")
				remove(t, c, garden("hortus"))
				expect("a deletion", "cleanup hortus")
				if n := s.count(isGet) - reads; n > 0 {
					t.Errorf("%d reads were sent", n)
				}
			})
		})
	}
}

// untyped returns a controller of gardens for a T that stands for any kind.
func untyped[T any, P kube.ObjectOf[T]](calls *journal, gardens, plants, countries wire.Resource, view func(*kube.Client, wire.Resource, string) kube.API[T]) part {
	reconcile := func(ctx context.Context, t *T, c *kube.Client) (controller.Action, error) {
		g := P(t)
		children, err := view(c, plants, g.GetNamespace()).List(ctx, kube.OwnerIs(g))
		calls.record(fmt.Sprint("reconcile ", g.GetObjectKind().GroupVersionKind().Kind, " ", g.GetName(), " ", g.GetFinalizers(), " ", len(children)))
		return controller.Done(), err
	}
	return controller.New[T, P](reconcile, controller.Reconciled(controller.Kind(gardens)),
		controller.Owns[T, P](controller.Kind(plants)),
		controller.Watches[T, P](func(_ context.Context, t *T, _ *kube.Client) ([]kube.Key, error) {
			return []kube.Key{{Namespace: "default", Name: P(t).GetName()}}, nil
		}, controller.Kind(countries)),
	).Finalizer(finalizer, func(_ context.Context, t *T, _ *kube.Client) (controller.Cleanup, error) {
		calls.record("cleanup " + P(t).GetName())
		return controller.CleanupDone(), nil
	})
}
