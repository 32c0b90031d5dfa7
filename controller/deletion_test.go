package controller_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/yare-go/yare/controller"
)

// Promise 17: a predicate on the reconciled kind decides which edits matter. It never keeps
// the cleanup of a deleted object from running.
func TestPredicatesNeverHideADeletion(t *testing.T) {
	t.Parallel()
	for name, predicate := range map[string]controller.Predicate{
		"labels": controller.LabelsChanged, "annotations": controller.AnnotationsChanged, "nothing matters": never,
	} {
		for _, before := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", deleted before the start", false: ", deleted while running"}[before], func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *server) {
					var calls journal
					c := s.client()
					g := garden("eden")
					g.Finalizers = []string{finalizer}
					create(t, c, g)
					if before {
						remove(t, c, g)
					}
					start(t, c, gardening(&calls, controller.For(controller.When(predicate))))
					synctest.Wait()
					if !before {
						remove(t, c, g)
						synctest.Wait()
					}
					if got := calls.drain(); !slices.Contains(got, "cleanup eden") {
						t.Errorf("calls: %q, want a cleanup", got)
					}
					if s.object("gardens", "default", "eden") != nil {
						t.Error("the deleted object still exists")
					}
				})
			})
		}
	}
}
