package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 14: an owner is found by group, kind and uid, in whatever version the reference
// names it; a namesake of another group or kind, or a predecessor, is not found.
func TestOwnersAreMatchedByGroupKindAndUID(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*metav1.OwnerReference)
		want   bool
	}{
		"the owner":         {func(*metav1.OwnerReference) {}, true},
		"another version":   {func(r *metav1.OwnerReference) { r.APIVersion = "test.example.com/v1beta7" }, true},
		"another group":     {func(r *metav1.OwnerReference) { r.APIVersion = "other.example.com/v1" }, false},
		"another kind":      {func(r *metav1.OwnerReference) { r.Kind = "Country" }, false},
		"another uid":       {func(r *metav1.OwnerReference) { r.UID = "of-a-predecessor" }, false},
		"not in its charge": {func(r *metav1.OwnerReference) { r.Controller = new(bool) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				owner := create(t, c, garden("eden"))
				start(t, c, controller.New(recordingNames(&calls), controller.Owns[Plant]()))
				synctest.Wait()
				calls.drain()
				child := kube.OwnedBy(owner, plant("rose"))
				test.change(&child.OwnerReferences[0])
				create(t, c, child)
				synctest.Wait()
				remove(t, c, child)
				synctest.Wait()
				if got := len(calls.drain()); (got == 2) != test.want || got == 1 {
					t.Errorf("the coming and going of the child led to %d calls", got)
				}
			})
		})
	}
}

// recordingNames returns a reconcile function that records the name, and does nothing else.
func recordingNames(calls *journal) func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
	return func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
		calls.record(g.Name)
		return controller.Done(), nil
	}
}

// Promise 14: when an owner was made anew under its name, the late deletion of its
// predecessor's child does not concern it, and it begins as a new object does.
func TestOwnerMadeAnew(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var asked journal
		c := s.client()
		old := create(t, c, garden("eden"))
		child := create(t, c, kube.OwnedBy(old, plant("rose")))
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), fmt.Errorf("broken")
		}, controller.Owns[Plant]()).Backoff(func(g *Garden, _ error, attempt int) time.Duration {
			asked.record(fmt.Sprint(g.UID, " ", attempt))
			return time.Hour
		}))
		time.Sleep(90 * time.Minute)
		remove(t, c, old)
		fresh := create(t, c, garden("eden"))
		synctest.Wait()
		// The end of the old object may lead to a reconcile that already sees the new one, and
		// the new object leads to another reconcile: both are of an object that has just begun.
		got := asked.drain()
		want := []string{string(old.UID) + " 1", string(old.UID) + " 2", string(fresh.UID) + " 1"}
		if len(got) == 4 {
			want = append(want, string(fresh.UID)+" 2")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the policy was asked (-want +got):\n%s", diff)
		}
		remove(t, c, child)
		synctest.Wait()
		if got := asked.drain(); len(got) > 0 {
			t.Errorf("the child of the predecessor led to rounds: %v", got)
		}
	})
}

// Promise 14: ownership that Kubernetes forbids is refused before it is sent.
func TestForbiddenOwnership(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(ctx context.Context, g *Garden, c *kube.Client) error{
		"outside of namespaces": func(ctx context.Context, g *Garden, c *kube.Client) error {
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, &Country{ObjectMeta: metav1.ObjectMeta{Name: "peru"}}))
			return err
		},
		"in another namespace": func(ctx context.Context, g *Garden, c *kube.Client) error {
			p := plant("rose")
			p.Namespace = "elsewhere"
			_, err := kube.Apply(ctx, c, kube.OwnedBy(g, p))
			return err
		},
		"created in another namespace": func(ctx context.Context, g *Garden, c *kube.Client) error {
			p := plant("rose")
			p.Namespace = "elsewhere"
			_, err := kube.Everywhere[Plant](c).Create(ctx, kube.OwnedBy(g, p))
			return err
		},
		"by a merge patch": func(ctx context.Context, g *Garden, c *kube.Client) error {
			owned := kube.OwnedBy(g, plant("rose"))
			_, err := kube.Namespaced[Plant](c, "elsewhere").Patch(ctx, "rose",
				kube.MergePatch(object{"metadata": object{"ownerReferences": owned.OwnerReferences}}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				create(t, c, garden("eden"))
				start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
					return controller.Done(), test(ctx, g, c)
				}, controller.OnResult(calls.result)))
				time.Sleep(time.Hour)
				results := calls.drainResults()
				if len(results) != 1 || results[0].Outcome() != controller.OutcomeTerminal || !strings.Contains(results[0].Err.Error(), "OwnsByLabel") {
					t.Errorf("results: %+v; want one, terminal, that says what to do instead", results)
				}
				if n := s.count(func(r *wire.Request) bool { return r.Verb.IsWrite() && r.Resource.Plural != "gardens" }); n > 0 {
					t.Errorf("%d requests were sent", n)
				}
			})
		})
	}
}
