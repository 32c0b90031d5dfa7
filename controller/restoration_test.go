package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
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
		if got := s.object("plants", "default", "rose")["spec"]; got.(object)["height"] != 1.0 {
			t.Errorf("the rose is %v, want the height 1", got)
		}
	})
}
