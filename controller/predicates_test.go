package controller_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A predicate on objects decides by what the objects contain. Deletions, and objects that do not fit
// the type, pass.
func TestChanged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls, seen journal
		c := s.client()
		eden := create(t, c, garden("eden"))
		hasGrown := func(before, after *Plant) bool {
			switch {
			case before == nil:
				seen.record("added " + after.Name)
				return after.Spec.Height > 1
			case before.Spec.Height < 0:
				panic("it grows downwards")
			}
			before.Labels, after.Labels = nil, nil // they are copies
			return after.Spec.Height > before.Spec.Height
		}
		start(t, c, controller.New(recordingNames(&calls), controller.Owns[Plant](controller.Changed(hasGrown))))
		synctest.Wait()
		calls.drain()
		expect := func(what string, isReconciled bool) {
			t.Helper()
			synctest.Wait()
			if got := calls.drain(); slices.Contains(got, "eden") != isReconciled {
				t.Errorf("%s: reconciled %q, want %t", what, got, isReconciled)
			}
		}
		rose := func(height int, labels map[string]string) *Plant {
			p := plant("rose")
			p.Spec.Height, p.Labels = height, labels
			return kube.OwnedBy(eden, p)
		}
		create(t, c, rose(1, nil))
		expect("an addition that is rejected", false)
		apply(t, c, rose(1, map[string]string{"tended": "yes"}))
		expect("a change that is rejected", false)
		apply(t, c, rose(2, map[string]string{"tended": "yes"}))
		expect("a change that is accepted", true)
		apply(t, c, rose(-1, nil))
		expect("a second change that is rejected", false)
		apply(t, c, rose(-2, nil))
		expect("a panic", true)
		plants := resourceOf[Plant](t)
		owners := []any{object{"apiVersion": "test.example.com/v1", "kind": "Garden", "name": "eden", "uid": string(eden.UID), "controller": true}}
		s.Store(plants, "default", "odd", object{"metadata": object{"ownerReferences": owners}, "spec": object{"height": "tall"}})
		expect("an object that does not fit", true)
		remove(t, c, plant("rose"))
		expect("a deletion", true)
		if diff := cmp.Diff([]string{"added rose"}, seen.drain()); diff != "" {
			t.Errorf("additions (-want +got):\n%s", diff)
		}
	})
}

// A predicate on objects of the reconciled kind keeps no deletion away.
func TestChangedOfTheReconciledKind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, gardening(&calls, controller.Reconciled(controller.Changed(func(before, after *Garden) bool {
			return before == nil || before.Spec.Size != after.Spec.Size
		}))))
		synctest.Wait()
		calls.drain()
		g := garden("eden")
		g.Labels = map[string]string{"a": "b"}
		apply(t, c, g)
		synctest.Wait()
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("calls after a change of labels: %q", got)
		}
		remove(t, c, garden("eden"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"cleanup eden"}, calls.drain()); diff != "" {
			t.Errorf("calls after the deletion (-want +got):\n%s", diff)
		}
	})
}

// A predicate on objects of one kind is refused by a source of another one.
func TestChangedOfAnotherKind(t *testing.T) {
	t.Parallel()
	never := func(_, _ *Plant) bool { return false }
	neverNamed := func(_, _ *namedPlant) bool { return false }
	untyped := func(_, _ *unstructured.Unstructured) bool { return false }
	plants := resourceOf[Plant](t)
	var none func(_, _ *Plant) bool
	for name, test := range map[string]struct {
		option controller.Option
		// want is empty if the option is right.
		want string
	}{
		"own":                           {controller.Owns[Plant](controller.Changed(never)), ""},
		"projection":                    {controller.Owns[Plant](controller.Changed(neverNamed)), ""},
		"kind":                          {controller.Owns[unstructured.Unstructured](controller.Changed(untyped), controller.Kind(plants)), ""},
		"other":                         {controller.Owns[Garden](controller.Changed(never)), "PlantSpec is an option of a source of gardens"},
		"reconciled kind":               {controller.Reconciled(controller.Changed(never)), "is an option of a source of gardens"},
		"whole objects of a projection": {controller.Owns[namedPlant](controller.Changed(never)), "give it a function of controller_test.namedPlant"},
		"objects of metadata":           {controller.Owns[metav1.PartialObjectMetadata](controller.Kind(plants), controller.Changed(untyped)), "PartialObjectMetadata"},
		"typed objects of any kind":     {controller.Owns[unstructured.Unstructured](controller.Kind(plants), controller.Changed(never)), "leave controller.Kind out"},
		"any kind of typed objects":     {controller.Owns[Plant](controller.Changed(untyped)), "stands for any kind"},
		"nil":                           {controller.Owns[Plant](controller.Changed(none)), "is nil: leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := controller.New(recordingNames(new(journal)), test.option).Needs()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

// An object with the annotation is left alone until the annotation is removed, whatever a predicate returns.
// A deletion is not paused.
func TestPaused(t *testing.T) {
	t.Parallel()
	const annotation = "example.com/paused"
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		paused := func(name string, finalizers ...string) *Garden {
			g := garden(name)
			g.Finalizers, g.Annotations = finalizers, map[string]string{annotation: "", "example.com/other": "x"}
			return g
		}
		create(t, c, paused("eden"))
		create(t, c, paused("hortus", finalizer))
		var writes atomic.Int32
		s.mu.Lock()
		s.before = func(r *wire.Request) error {
			if r.ContentType == wire.ContentJSONPatch {
				writes.Add(1)
			}
			return nil
		}
		s.mu.Unlock()
		start(t, c, gardening(&calls, controller.Paused(annotation), controller.Reconciled(controller.When(controller.GenerationChanged))))
		synctest.Wait()
		g := paused("eden")
		g.Spec.Size = 7
		apply(t, c, g)
		synctest.Wait()
		if got := calls.drain(); len(got) > 0 || writes.Load() > 0 {
			t.Errorf("calls during the pause: %q, and %d writes", got, writes.Load())
		}
		remove(t, c, garden("hortus"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"cleanup hortus"}, calls.drain()); diff != "" {
			t.Errorf("calls after a deletion during the pause (-want +got):\n%s", diff)
		}
		annotate := func(annotations map[string]any) {
			t.Helper()
			if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), "eden",
				kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations}})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		annotate(map[string]any{annotation: nil})
		if diff := cmp.Diff([]string{"reconcile eden [test.example.com/cleanup]"}, calls.drain()); diff != "" {
			t.Errorf("calls after the pause (-want +got):\n%s", diff)
		}
		annotate(map[string]any{"example.com/other": "y"})
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("calls after a change of another annotation: %q", got)
		}
	})
}
