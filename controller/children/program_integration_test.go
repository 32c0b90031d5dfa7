package children_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/controller/children"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// shopkeeper returns a program that applies what the spec of each Shop lists as a set. verbs are those of its children.
func (s *street) shopkeeper(results chan<- controller.Result, verbs ...wire.Verb) []operator.Part {
	set := children.Set{Name: "web", Prune: true, AllowEmpty: true, PruneData: true}
	recorder := events.New("shopkeeper")
	reconcile := func(ctx context.Context, shop *Shop, c *kube.Client) (controller.Action, error) {
		if shop.Spec.Waits {
			return controller.Done(), nil
		}
		objects := s.maps(shop.Spec.Maps...)
		for _, name := range shop.Spec.Secrets {
			objects = append(objects, &corev1.Secret{ObjectMeta: s.named(name)})
		}
		_, err := set.Apply(ctx, c, shop, objects...)
		return controller.Done(), err
	}
	return []operator.Part{recorder, controller.New(reconcile,
		controller.Owns[corev1.ConfigMap](controller.WriteVerbs(verbs...)), controller.Owns[corev1.Secret](controller.WriteVerbs(verbs...)),
		controller.OnResult(func(r controller.Result) { results <- r }))}
}

// setSpec replaces the spec of a Shop, and waits for a reconcile of the new generation.
func (s *street) setSpec(name string, spec ShopSpec) {
	s.Helper()
	if _, err := kube.Namespaced[Shop](s.client, s.namespace).Patch(s.Context(), name,
		kube.JSONPatch(kube.ReplaceAt("/spec", spec))); err != nil {
		s.Fatal(err)
	}
}

// Promise 28 in a program: a reconcile that returns before the call deletes nothing, kinds of which the call has no object
// are pruned, and a program at rest asks the server for nothing.
func TestPruneOfAProgram(t *testing.T) {
	s := onStreet(t)
	results := make(chan controller.Result, 1000)
	proxy := s.cluster.Proxy(t)
	yaretest.RunParts(t, proxy, s.shopkeeper(results, wire.VerbCreate, wire.VerbPatch, wire.VerbDelete)...)
	shop := s.shop("a")
	secrets := func() (names []string) {
		all, err := kube.List[corev1.Secret](t.Context(), s.client, s.namespace)
		if err != nil {
			t.Error(err)
		}
		for _, each := range all {
			names = append(names, each.Name)
		}
		return names
	}
	waitFor := func(maps, wantSecrets []string) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			all, err := kube.List[corev1.ConfigMap](t.Context(), s.client, s.namespace, kube.OwnerIs(shop))
			if err != nil || len(all) != len(maps) || !slices.Equal(secrets(), wantSecrets) {
				return fmt.Errorf("there are %d ConfigMaps and the Secrets %q, %w", len(all), secrets(), err)
			}
			return nil
		})
		s.wantMaps(maps...)
	}
	s.setSpec("a", ShopSpec{Maps: []string{"1", "2"}, Secrets: []string{"3"}})
	waitFor([]string{"1", "2"}, []string{"3"})
	s.setSpec("a", ShopSpec{Waits: true})
	proxy.RequireIdle(t, 0)
	waitFor([]string{"1", "2"}, []string{"3"})
	s.setSpec("a", ShopSpec{Maps: []string{"2"}})
	waitFor([]string{"2"}, nil)
	yaretest.Eventually(t, func() error {
		all, err := kube.List[eventsv1.Event](t.Context(), s.client, s.namespace)
		if !slices.ContainsFunc(all, func(e *eventsv1.Event) bool {
			return e.Reason == "ChildrenNotDeclared" && e.Regarding.UID == shop.UID && strings.Contains(e.Note, `Secret "`+s.namespace+`/3"`)
		}) {
			return fmt.Errorf("no event among %d, %w", len(all), err)
		}
		return nil
	})
	proxy.RequireIdle(t, 0)
	before := len(proxy.Requests())
	for len(results) > 0 {
		<-results
	}
	if _, err := kube.Namespaced[Shop](s.client, s.namespace).Patch(t.Context(), "a",
		kube.JSONPatch(kube.AddAt("/metadata/annotations", map[string]string{"a": "b"}))); err != nil {
		t.Fatal(err)
	}
	if r := <-results; r.Err != nil {
		t.Error(r.Err)
	}
	if more := proxy.Requests()[before:]; len(more) > 0 {
		t.Errorf("a reconcile of a program at rest has sent %v", more)
	}
}

// The error of a program that does not declare the deletion has the expression to add.
func TestPruneThatIsNotDeclared(t *testing.T) {
	s := onStreet(t)
	results := make(chan controller.Result, 1000)
	yaretest.RunParts(t, s.cluster, s.shopkeeper(results, wire.VerbCreate, wire.VerbPatch)...)
	s.shop("a")
	s.setSpec("a", ShopSpec{Maps: []string{"1", "2"}})
	yaretest.WaitFor(t, kube.Namespaced[corev1.ConfigMap](s.client, s.namespace), "2", func(*corev1.ConfigMap) error { return nil })
	s.setSpec("a", ShopSpec{Maps: []string{"1"}})
	yaretest.Eventually(t, func() error {
		r := <-results
		if r.Err == nil || !strings.Contains(r.Err.Error(), "controller.Writes[corev1.ConfigMap](wire.VerbDelete)") {
			return fmt.Errorf("the result is %w", r.Err)
		}
		return nil
	})
	s.wantMaps("1", "2")
}
