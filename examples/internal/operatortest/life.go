package operatortest

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// The sample works unchanged.
func (s *suite) testSample(t *testing.T) {
	w := s.worldIn(t, "default", s.account.Proxy(t))
	w.start(t)
	s.cluster.Kubectl(t, "", "apply", "-f", "sample.yaml")
	w.waitUntilReady(t, s.Sample, s.SampleState)
	s.cluster.Kubectl(t, "", "delete", "-f", "sample.yaml")
	w.waitUntilGone(t, s.Sample)
	w.stop(t)
}

// An object is created, changed in each way and deleted, and its children with it.
func (s *suite) testLife(t *testing.T) {
	w := s.world(t)
	w.apply(t, "before", first) // before the operator starts
	w.start(t)
	w.waitUntilReady(t, "before", first)
	w.apply(t, "fresh", first)
	w.waitUntilReady(t, "fresh", first)
	uids := w.uids(t, "fresh")
	for _, state := range []State{
		{Replicas: 3, Image: first.Image},
		{Replicas: 3, Image: second.Image},
		{Replicas: 0, Image: second.Image},
		second,
	} {
		w.apply(t, "fresh", state)
		w.waitUntilReady(t, "fresh", state)
	}
	// The children were changed, not recreated.
	for name, uid := range w.uids(t, "fresh") {
		if uid != uids[name] {
			t.Errorf("a change of the object recreated %s", name)
		}
	}
	w.delete(t, "fresh")
	w.waitUntilGone(t, "fresh")
	w.waitUntilReady(t, "before", first)
	w.stop(t)
	// Without the operator the children stay.
	w.waitUntilReady(t, "before", first)
	w.requireNoErrors(t)
}

// uids returns the UIDs of the children, by kind and name.
func (w *world) uids(t *testing.T, name string) map[string]string {
	t.Helper()
	uids := make(map[string]string)
	for _, child := range parse(t, w.Children(name, first)) {
		live, err := w.apiOf(t, child).Get(t.Context(), child.GetName())
		if err != nil {
			t.Fatal(err)
		}
		uids[child.GetKind()+" "+child.GetName()] = string(live.GetUID())
	}
	return uids
}

// requireNoErrors fails t if the operator logged an error or a warning.
func (w *world) requireNoErrors(t *testing.T) {
	t.Helper()
	for _, line := range errorLines(w.operator) {
		t.Errorf("nothing failed, but it logged: %s", line)
	}
}

// A child that others delete or change is restored.
func (s *suite) testTampering(t *testing.T) {
	w := s.world(t)
	w.apply(t, "app", first)
	w.start(t)
	before := w.waitUntilReady(t, "app", first)
	for _, child := range parse(t, s.Children("app", first)) {
		uids := w.uids(t, "app")
		// The deletion does not wait for the child's end, as an accidental deletion would not.
		if err := w.apiOf(t, child).Delete(t.Context(), child.GetName()); err != nil {
			t.Fatal(err)
		}
		yaretest.WaitFor(t, w.apiOf(t, child), child.GetName(), func(live *object) error {
			if string(live.GetUID()) == uids[child.GetKind()+" "+child.GetName()] {
				return fmt.Errorf("%s %s has not been deleted yet", child.GetKind(), child.GetName())
			}
			return nil
		})
		compareStates(t, "after the "+child.GetKind()+" was deleted", before, w.waitUntilReady(t, "app", first))
	}
	for _, tamper := range s.Tampers {
		args, stdin := tamper.arguments("app")
		generations := w.versions(t, "app")
		s.cluster.Kubectl(t, stdin, append(args, "--namespace", w.namespace)...)
		if now := w.versions(t, "app"); now == generations {
			t.Errorf("%s: it changed nothing, so that nothing is tested", tamper.Name)
		}
		w.waitUntilReady(t, "app", first)
	}
	w.stop(t)
	w.requireNoErrors(t)
}

// versions returns a text that changes with every change of the children.
func (w *world) versions(t *testing.T, name string) (all string) {
	t.Helper()
	for _, child := range parse(t, w.Children(name, first)) {
		live, err := w.apiOf(t, child).Get(t.Context(), child.GetName())
		if err != nil {
			t.Fatal(err)
		}
		all += live.GetResourceVersion() + " "
	}
	return all
}

// An object that is deleted while the operator is down is gone when the operator is back: no
// finalizer is left.
func (s *suite) testDeletedWhileDown(t *testing.T) {
	w := s.world(t)
	w.apply(t, "app", first)
	w.apply(t, "never-seen", first)
	w.start(t)
	w.waitUntilReady(t, "app", first)
	w.operator.Kill()
	w.apply(t, "new", first) // there is no finalizer to hold it
	w.delete(t, "new")
	w.delete(t, "app")
	if s.Finalizer != "" {
		if object, err := w.api().Get(t.Context(), "app"); err != nil || object.GetDeletionTimestamp() == nil {
			t.Errorf("with its finalizer it should wait for the operator: %v", err)
		}
	}
	w.start(t)
	w.waitUntilGone(t, "app")
	w.waitUntilGone(t, "new")
	w.waitUntilReady(t, "never-seen", first)
	w.stop(t)
	w.requireNoErrors(t)
}

// An object that is recreated under its name gets children of its own.
func (s *suite) testMadeAnew(t *testing.T) {
	w := s.world(t)
	w.start(t)
	w.apply(t, "app", first)
	w.waitUntilReady(t, "app", first)
	for _, down := range []bool{false, true} {
		old, uids := w.uid(t, "app"), w.uids(t, "app")
		if down {
			w.operator.Kill()
		}
		w.delete(t, "app")
		if down && s.Finalizer != "" {
			w.start(t)
			down = false
		}
		// The name is free. Children of the old object may still exist.
		yaretest.WaitUntilGone(t, w.api(), "app")
		w.apply(t, "app", second)
		if down {
			w.start(t)
		}
		w.waitUntilReady(t, "app", second)
		if w.uid(t, "app") == old {
			t.Fatal("it is not another object")
		}
		for name, uid := range w.uids(t, "app") {
			if uid == uids[name] {
				t.Errorf("%s belongs to the object that was deleted", name)
			}
		}
		w.apply(t, "app", first)
		w.waitUntilReady(t, "app", first)
	}
	w.stop(t)
	w.requireNoErrors(t)
}

func (w *world) uid(t *testing.T, name string) string {
	t.Helper()
	object, err := w.api().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(object.GetUID())
}

// The operator works with the permissions that it prints, in one namespace, and no others.
func (s *suite) testFewRights(t *testing.T) {
	namespace := s.cluster.Namespace(t)
	account := s.cluster.ServiceAccount(t, namespace)
	printed := printedRules(t, s.program, "--watch-namespace", namespace)
	printed.allow(t, account)
	if _, err := kube.Dynamic(account.Client(t), crds, "").List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("it may see CustomResourceDefinitions: %v", err)
	}
	w := s.worldIn(t, namespace, account.Proxy(t))
	w.start(t)
	w.apply(t, "app", first)
	w.waitUntilReady(t, "app", first)
	w.apply(t, "app", second)
	w.waitUntilReady(t, "app", second)
	w.delete(t, "app")
	w.waitUntilGone(t, "app")
	w.stop(t)
	w.requireNoErrors(t)
	printed.checkUsed(t, w.proxy.Requests())
}
