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
	w.become(t, s.Sample, s.SampleState)
	s.cluster.Kubectl(t, "", "delete", "-f", "sample.yaml")
	w.gone(t, s.Sample)
	w.stop(t)
}

// Created, changed in each way, deleted; and the children with it.
func (s *suite) testLife(t *testing.T) {
	w := s.world(t)
	w.apply(t, "before", first) // before the operator starts
	w.start(t)
	w.become(t, "before", first)
	w.apply(t, "fresh", first)
	w.become(t, "fresh", first)
	uids := w.uids(t, "fresh")
	for _, state := range []State{
		{Replicas: 3, Image: first.Image},
		{Replicas: 3, Image: second.Image},
		{Replicas: 0, Image: second.Image},
		second,
	} {
		w.apply(t, "fresh", state)
		w.become(t, "fresh", state)
	}
	// They were changed, and not made anew.
	for name, uid := range w.uids(t, "fresh") {
		if uid != uids[name] {
			t.Errorf("a change of the object made %s anew", name)
		}
	}
	w.delete(t, "fresh")
	w.gone(t, "fresh")
	w.become(t, "before", first)
	w.stop(t)
	// The operator being gone, what it made stays.
	w.become(t, "before", first)
	w.noErrors(t)
}

// uids are those of the children.
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

// noErrors is for a life without trouble.
func (w *world) noErrors(t *testing.T) {
	t.Helper()
	for _, line := range errorLines(w.operator) {
		t.Errorf("there was no trouble, but it logged: %s", line)
	}
}

// Somebody deletes or changes a child: it is put back.
func (s *suite) testTampering(t *testing.T) {
	w := s.world(t)
	w.apply(t, "app", first)
	w.start(t)
	before := w.become(t, "app", first)
	for _, child := range parse(t, s.Children("app", first)) {
		uids := w.uids(t, "app")
		// By the API, and not waiting, as a slip of the hand would be.
		if err := w.apiOf(t, child).Delete(t.Context(), child.GetName()); err != nil {
			t.Fatal(err)
		}
		yaretest.WaitFor(t, w.apiOf(t, child), child.GetName(), func(live *object) error {
			if string(live.GetUID()) == uids[child.GetKind()+" "+child.GetName()] {
				return fmt.Errorf("%s %s has not been deleted yet", child.GetKind(), child.GetName())
			}
			return nil
		})
		compareStates(t, "after the "+child.GetKind()+" was deleted", before, w.become(t, "app", first))
	}
	for _, tamper := range s.Tampers {
		args, stdin := tamper.of("app")
		generations := w.versions(t, "app")
		s.cluster.Kubectl(t, stdin, append(args, "--namespace", w.namespace)...)
		if now := w.versions(t, "app"); now == generations {
			t.Errorf("%s: it changed nothing, so that nothing is tested", tamper.Name)
		}
		w.become(t, "app", first)
	}
	w.stop(t)
	w.noErrors(t)
}

// versions changes with every change of the children.
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

// Deleted while the operator is down: finished when it is back, and no finalizer is left.
func (s *suite) testDeletedWhileDown(t *testing.T) {
	w := s.world(t)
	w.apply(t, "app", first)
	w.apply(t, "never-seen", first)
	w.start(t)
	w.become(t, "app", first)
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
	w.gone(t, "app")
	w.gone(t, "new")
	w.become(t, "never-seen", first)
	w.stop(t)
	w.noErrors(t)
}

// An object of the same name as one before is another.
func (s *suite) testMadeAnew(t *testing.T) {
	w := s.world(t)
	w.start(t)
	w.apply(t, "app", first)
	w.become(t, "app", first)
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
		// As soon as the name is free; what belonged to the old one may still be there.
		yaretest.Eventually(t, func() error { return missing(t.Context(), w.api(), "app") })
		w.apply(t, "app", second)
		if down {
			w.start(t)
		}
		w.become(t, "app", second)
		if w.uid(t, "app") == old {
			t.Fatal("it is not another object")
		}
		for name, uid := range w.uids(t, "app") {
			if uid == uids[name] {
				t.Errorf("%s is that of the object that was deleted", name)
			}
		}
		w.apply(t, "app", first)
		w.become(t, "app", first)
	}
	w.stop(t)
	w.noErrors(t)
}

func (w *world) uid(t *testing.T, name string) string {
	t.Helper()
	object, err := w.api().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(object.GetUID())
}

// With the rights that the test lists, in one namespace, and nothing else, it works.
func (s *suite) testFewRights(t *testing.T) {
	namespace := s.cluster.Namespace(t)
	account := s.cluster.ServiceAccount(t, namespace)
	account.Allow(t, namespace, s.Rules...)
	if _, err := kube.Dynamic(account.Client(t), crds, "").List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("it may see CustomResourceDefinitions: %v", err)
	}
	w := s.worldIn(t, namespace, account.Proxy(t))
	w.start(t)
	w.apply(t, "app", first)
	w.become(t, "app", first)
	w.apply(t, "app", second)
	w.become(t, "app", second)
	w.delete(t, "app")
	w.gone(t, "app")
	w.stop(t)
	w.noErrors(t)
	s.checkRules(t, w.proxy.Requests())
}
