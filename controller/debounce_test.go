package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// A burst of changes leads to one reconcile, once none has come for some time. Changes without an end
// do not keep the reconcile away.
func TestDebounce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		var began time.Time
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			calls.record(time.Since(began).String())
			return controller.Done(), nil
		}, controller.Debounce(5*time.Second)))
		time.Sleep(time.Minute)
		calls.drain()
		began = time.Now()
		change := func(seconds int) {
			for i := range seconds {
				g := garden("eden")
				g.Spec.Size = 10 + i
				apply(t, c, g)
				time.Sleep(time.Second)
			}
		}
		change(4)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"8s"}, calls.drain()); diff != "" {
			t.Errorf("reconciled after a burst (-want +got):\n%s", diff)
		}
		began = time.Now()
		change(90)
		time.Sleep(time.Minute)
		got := calls.drain()
		if len(got) != 2 || !slices.Contains(got, "50s") {
			t.Errorf("reconciled at %q, want at 50s and after the last change", got)
		}
	})
}
