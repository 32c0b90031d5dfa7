package children_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller/children"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// web is the set of most tests.
var web = children.Set{Name: "web", Prune: true}

// One call applies objects of any kind in their order, and returns them as what they are.
func TestApplyOfASet(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"namespace": s.namespace, "name": "b"},
	}}
	labels := map[string]string{"app": "a"}
	deployment := s.deployment("a", "1")
	deployment.Labels = labels
	answers, err := children.Set{Name: "web"}.Apply(s.ctx, s.client, shop, deployment, account)
	if err != nil {
		t.Fatal(err)
	}
	d, isDeployment := answers[0].(*appsv1.Deployment)
	a, isUnstructured := answers[1].(*unstructured.Unstructured)
	if len(answers) != 2 || !isDeployment || !isUnstructured {
		t.Fatalf("the answers are %v", answers)
	}
	for _, each := range []kube.Object{d, a} {
		want := "web." + string(shop.UID)
		if got := each.GetLabels()["children.yare.dev/set"]; got != want || !metav1.IsControlledBy(each, shop) || each.GetUID() == "" {
			t.Errorf("%s has the label %q, want %q, and the owners %v", each.GetName(), got, want, each.GetOwnerReferences())
		}
	}
	if len(labels) != 1 {
		t.Errorf("the labels of the author have become %v", labels)
	}
}

// deployment returns a Deployment whose Pods become ready.
func (s *street) deployment(name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	one := int32(1)
	return &appsv1.Deployment{ObjectMeta: s.named(name), Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
		},
	}}
}

// The first error ends a call. With KeepGoing the other objects are applied too.
func TestErrorsOfASet(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	objects := func(names ...string) []kube.Object {
		all := s.maps(names...)
		all[1].(*corev1.ConfigMap).Data = map[string]string{"not valid": ""}
		return all
	}
	answers, err := children.Set{}.Apply(s.ctx, s.client, shop, objects("1", "2", "3")...)
	if !kube.IsInvalid(err) || len(answers) != 1 || answers[0].GetName() != "1" {
		t.Errorf("the answers are %v, %v", answers, err)
	}
	s.wantMaps("1")
	answers, err = children.Set{KeepGoing: true}.Apply(s.ctx, s.client, shop, objects("4", "5", "6")...)
	if !kube.IsInvalid(err) || len(answers) != 3 || answers[1] != nil || answers[2].GetName() != "6" {
		t.Errorf("KeepGoing: the answers are %v, %v", answers, err)
	}
	s.wantMaps("1", "4", "6")
}

// A mistake is an error before any request.
func TestMistakesInASet(t *testing.T) {
	t.Parallel()
	read := &Shop{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "7"}}
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}}
	none := (*corev1.ConfigMap)(nil)
	for want, each := range map[string]struct {
		set     children.Set
		owner   kube.Object
		objects []kube.Object
	}{
		"set Name":           {children.Set{Prune: true}, read, nil},
		"at most 26":         {children.Set{Name: strings.Repeat("a", 27)}, read, nil},
		"lower-case letters": {children.Set{Name: "Web"}, read, nil},
		"no uid":             {web, new(Shop), nil},
		"declared twice":     {web, read, []kube.Object{one, one}},
		"2 is nil":           {web, read, []kube.Object{one, none}},
		"former kind":        {children.Set{FormerKinds: []kube.Object{nil}}, read, nil},
	} {
		_, err := each.set.Apply(t.Context(), kube.NewClientFromHandler(nil), each.owner, each.objects...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// Promise 28: a set deletes what it has declared and does not declare any more, and nothing else.
func TestPrune(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	s.apply(web, shop, "1", "2")
	s.apply(web, shop, "2", "3")
	s.wantMaps("2", "3")
	s.apply(children.Set{Name: "web"}, shop, "3")
	s.wantMaps("2", "3") // without Prune
	s.apply(web, shop)
	s.wantMaps("2", "3") // an empty set
	if s.log.count("set AllowEmpty") != 1 {
		t.Error("the empty set is not logged")
	}
	empty := web
	empty.AllowEmpty = true
	s.apply(empty, shop)
	s.wantMaps()
}

// Promise 28: an error in a call deletes nothing, in either mode.
func TestErrorsPruneNothing(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	s.apply(web, shop, "1", "2")
	for _, keepsGoing := range []bool{false, true} {
		set := web
		set.KeepGoing = keepsGoing
		broken := s.maps("1", "3")
		broken[0].(*corev1.ConfigMap).Data = map[string]string{"not valid": ""}
		if _, err := set.Apply(s.ctx, s.client, shop, broken...); !kube.IsInvalid(err) {
			t.Error(err)
		}
		if keepsGoing {
			s.wantMaps("1", "2", "3")
		} else {
			s.wantMaps("1", "2")
		}
	}
}

// Promise 28: sets of one owner, owners with one set name, and controllers of one kind do not see each other's children.
func TestPruneLeavesOtherSets(t *testing.T) {
	s := onStreet(t)
	one, two := s.shop("one"), s.shop("two")
	other := web
	other.Name = "other"
	s.apply(web, one, "one-web")
	s.apply(other, one, "one-other")
	s.apply(web, two, "two-web")
	mine := s.client
	s.client = mine.WithFieldManager("second-controller")
	s.apply(web, one, "one-second")
	s.client = mine
	s.apply(web, one, "new")
	s.wantMaps("new", "one-other", "one-second", "two-web")
}

// Promise 28: an owner that has changed since it was read, is being deleted or was replaced deletes nothing.
func TestStaleOwnerPrunesNothing(t *testing.T) {
	s := onStreet(t)
	s.shop("a")
	held, err := kube.Namespaced[Shop](s.client, s.namespace).Patch(t.Context(), "a",
		kube.JSONPatch(kube.AddAt("/metadata/finalizers", []string{"test.example.com/hold"})))
	if err != nil {
		t.Fatal(err)
	}
	s.apply(web, held, "1", "2")
	fresh, err := kube.Namespaced[Shop](s.client, s.namespace).Patch(t.Context(), "a",
		kube.JSONPatch(kube.AddAt("/spec/maps", []string{"1", "2"})))
	if err != nil {
		t.Fatal(err)
	}
	s.apply(web, held, "1")
	s.wantMaps("1", "2") // the spec has changed
	if err := s.client.Delete(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	s.apply(web, fresh, "1")
	s.wantMaps("1", "2") // it is being deleted
	if _, err := kube.Namespaced[Shop](s.client, s.namespace).Patch(t.Context(), "a",
		kube.JSONPatch(kube.RemoveAt("/metadata/finalizers"))); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitUntilGone(t, kube.Namespaced[Shop](s.client, s.namespace), "a")
	// A kind without generations is current at its version only.
	owner := create(t, s.client, &corev1.ServiceAccount{ObjectMeta: s.named("owner")})
	s.apply(web, owner, "3", "4")
	changed, err := kube.Namespaced[corev1.ServiceAccount](s.client, s.namespace).Patch(t.Context(), "owner",
		kube.JSONPatch(kube.AddAt("/metadata/annotations", map[string]string{"a": "b"})))
	if err != nil {
		t.Fatal(err)
	}
	isThere := func(name string) bool {
		_, err := kube.Get[corev1.ConfigMap](t.Context(), s.client, s.namespace, name)
		return err == nil
	}
	s.apply(web, owner, "3")
	if !isThere("4") {
		t.Error("an owner of an older version has deleted a child")
	}
	s.apply(web, changed, "3")
	if isThere("4") {
		t.Error("the child is still there")
	}
}

// Promise 28: objects that were created, adopted by hand or applied by others stay, although they have the label.
func TestPruneLeavesObjectsOfOthers(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	s.apply(web, shop, "kept")
	label := map[string]string{"children.yare.dev/set": "web." + string(shop.UID)}
	child := func(name string) *corev1.ConfigMap {
		o := &corev1.ConfigMap{ObjectMeta: s.named(name)}
		o.Labels = label
		return kube.OwnedBy(shop, o)
	}
	create(t, s.client, child("created"))
	if _, err := kube.Apply(t.Context(), s.client.WithFieldManager("somebody"), child("applied")); err != nil {
		t.Fatal(err)
	}
	// This manager has applied an object, whose owner somebody has removed.
	s.apply(web, shop, "kept", "orphaned")
	if _, err := kube.Namespaced[corev1.ConfigMap](s.client, s.namespace).Patch(t.Context(), "orphaned",
		kube.JSONPatch(kube.RemoveAt("/metadata/ownerReferences"))); err != nil {
		t.Fatal(err)
	}
	// Another owner has got the control of what this manager has applied.
	s.apply(web, shop, "kept", "given")
	owners := kube.OwnedBy(s.shop("b"), child("x")).OwnerReferences
	owners[0].Controller = nil
	if _, err := kube.Namespaced[corev1.ConfigMap](s.client, s.namespace).Patch(t.Context(), "given",
		kube.JSONPatch(kube.ReplaceAt("/metadata/ownerReferences", owners))); err != nil {
		t.Fatal(err)
	}
	adopted := create(t, s.client.WithFieldManager("hand"), &corev1.ConfigMap{ObjectMeta: s.named("adopted")})
	if _, err := kube.Namespaced[corev1.ConfigMap](s.client.WithFieldManager("hand"), s.namespace).Patch(t.Context(), adopted.Name,
		kube.JSONPatch(kube.AddAt("/metadata/ownerReferences", child("x").OwnerReferences), kube.AddAt("/metadata/labels", label))); err != nil {
		t.Fatal(err)
	}
	s.apply(web, shop, "kept")
	s.wantMaps("adopted", "applied", "created", "given", "kept", "orphaned")
}

// Promise 28: kinds that hold data need PruneData.
func TestPruneOfData(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	secret := &corev1.Secret{ObjectMeta: s.named("data")}
	if _, err := web.Apply(s.ctx, s.client, shop, append(s.maps("1"), secret)...); err != nil {
		t.Fatal(err)
	}
	s.apply(web, shop, "1")
	if _, err := kube.Get[corev1.Secret](t.Context(), s.client, s.namespace, "data"); err != nil || s.log.count("set PruneData") != 1 {
		t.Errorf("the Secret: %v, the log %q", err, s.log.lines)
	}
	set := web
	set.PruneData = true
	s.apply(set, shop, "1")
	if _, err := kube.Get[corev1.Secret](t.Context(), s.client, s.namespace, "data"); !kube.IsNotFound(err) {
		t.Error(err)
	}
}

// Promise 28: children of a release without sets are named in the log once, and belong to the set when it applies them.
func TestPruneAfterAReleaseWithoutSets(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	before := func(names ...string) {
		for _, each := range s.maps(names...) {
			if _, err := kube.Apply(t.Context(), s.client, kube.OwnedBy(shop, each)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before("1", "2")
	s.apply(web, shop, "1")
	s.apply(web, shop, "1")
	s.wantMaps("1", "2")
	if s.log.count("without a set") != 1 || s.log.count(s.namespace+`/2"`) != 1 {
		t.Errorf("the log is %q", s.log.lines)
	}
	s.apply(web, shop, "1", "2")
	before("1", "2") // a rollback
	s.apply(web, shop, "1")
	s.wantMaps("1", "2")
	s.apply(web, shop, "1", "2")
	s.apply(web, shop, "1")
	s.wantMaps("1")
}

// A child whose name has changed stays until its successor is ready.
func TestPruneOfARenamedChild(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	set := web
	set.UntilReady = true
	deployments := kube.Namespaced[appsv1.Deployment](s.client, s.namespace)
	wasThere := false
	for _, name := range []string{"old", "new"} {
		yaretest.Eventually(t, func() error {
			_, errOfOld := deployments.Get(t.Context(), "old")
			answers, err := set.Apply(s.ctx, s.client, shop, s.deployment(name, "1"))
			if err != nil {
				return err
			}
			if answers[0].(*appsv1.Deployment).Status.AvailableReplicas == 0 {
				if name == "new" {
					wasThere = wasThere || errOfOld == nil
					if _, err := deployments.Get(t.Context(), "old"); err != nil {
						t.Errorf("old has gone before new was ready: %v", err)
					}
				}
				return fmt.Errorf("%s is not available yet", name)
			}
			return nil
		})
	}
	yaretest.WaitUntilGone(t, deployments, "old")
	if !wasThere {
		t.Error("both were never there together")
	}
}

// Kinds that the controller does not own any more are looked at if the set names them.
func TestPruneOfFormerKinds(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	account := &corev1.ServiceAccount{ObjectMeta: s.named("former")}
	if _, err := web.Apply(s.ctx, s.client, shop, append(s.maps("1"), account)...); err != nil {
		t.Fatal(err)
	}
	isThere := func() bool {
		_, err := kube.Get[corev1.ServiceAccount](t.Context(), s.client, s.namespace, "former")
		return err == nil
	}
	if s.apply(web, shop, "1"); !isThere() {
		t.Error("a kind that is neither owned nor named was pruned")
	}
	gone := &unstructured.Unstructured{}
	gone.SetAPIVersion("gone.example.com/v1")
	gone.SetKind("Gone")
	set := web
	set.FormerKinds = []kube.Object{gone, new(corev1.ServiceAccount)}
	if s.apply(set, shop, "1"); isThere() {
		t.Error("the former kind was not pruned")
	}
	if events := s.drain(); !slices.Equal(events, []string{"ChildrenNotDeclared a"}) {
		t.Errorf("all children of a kind: the events are %q", events)
	}
}

// Much is announced by one event and one line before it is deleted.
func TestPruneOfMuch(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	names := []string{"kept", "last"}
	for i := range 11 {
		names = append(names, fmt.Sprint("n", i))
	}
	s.apply(web, shop, names...)
	s.apply(web, shop, "kept", "last")
	s.wantMaps("kept", "last")
	if events := s.drain(); !slices.Equal(events, []string{"ChildrenNotDeclared a"}) || s.log.count("WARN deletes") != 1 {
		t.Errorf("11 deletions: the events are %q, the log %q", events, s.log.lines)
	}
	s.apply(web, shop, "kept")
	if events := s.drain(); len(events) > 0 || s.log.count("INFO deletes") != 1 {
		t.Errorf("one deletion: the events are %q, the log %q", events, s.log.lines)
	}
}

// A child that changes between the list and its deletion stays, and so does another object of its name.
func TestPruneOfAChildThatChanges(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	s.apply(web, shop, "1", "2")
	var requests []*wire.Request
	meanwhile := s.client.With(func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if requests = append(requests, r); r.Verb == wire.VerbDelete {
				if _, err := kube.Namespaced[corev1.ConfigMap](s.client, s.namespace).Patch(ctx, r.Name,
					kube.JSONPatch(kube.AddAt("/data/new", "value"))); err != nil {
					return nil, err
				}
			}
			return next.Do(ctx, r)
		})
	})
	_, err := web.Apply(s.ctx, meanwhile, shop, s.maps("1")...)
	if !kube.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	s.wantMaps("1", "2")
	last := requests[len(requests)-1]
	isLive := func(verb wire.Verb, plural string) bool {
		return slices.ContainsFunc(requests, func(r *wire.Request) bool {
			return r.Verb == verb && r.Resource.Plural == plural && r.Live
		})
	}
	if last.Preconditions.UID == "" || last.Preconditions.ResourceVersion == "" ||
		!isLive(wire.VerbList, "configmaps") || !isLive(wire.VerbGet, "shops") {
		t.Errorf("the deletion has %v, after %v", last.Preconditions, requests)
	}
}

// After a crash before or after any write, the next call makes the same state as a call without a crash.
func TestCrashesOfASet(t *testing.T) {
	s := onStreet(t)
	errCrash := errors.New("crashed")
	for n, isLast := 1, false; !isLast; n++ {
		for _, isAfter := range []bool{false, true} {
			shop := s.shop(fmt.Sprintf("a%d%t", n, isAfter))
			name := func(i int) string { return fmt.Sprint(shop.Name, "-", i) }
			writes := 0
			dying := s.client.With(func(next wire.Handler) wire.Handler {
				return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					if r.Verb.IsWrite() {
						writes++
					}
					if writes > n || writes == n && !isAfter {
						return nil, errCrash
					}
					response, err := next.Do(ctx, r)
					if writes == n && r.Verb.IsWrite() {
						return nil, errCrash
					}
					return response, err
				})
			})
			s.apply(web, shop, name(1), name(2), name(3))
			_, err := web.Apply(s.ctx, dying, shop, s.maps(name(3), name(4))...)
			isLast = err == nil
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			s.apply(web, shop, name(3), name(4))
			children, err := kube.List[corev1.ConfigMap](t.Context(), s.client, s.namespace, kube.OwnerIs(shop))
			if err != nil || len(children) != 2 || children[0].Name != name(3) || children[1].Name != name(4) {
				t.Errorf("after a crash at the write %d, after it %t: %d children, %v", n, isAfter, len(children), err)
			}
		}
		if isLast && n != 5 {
			t.Errorf("the call makes %d writes, want 4", n-1)
		}
	}
}

// The error of a deletion that is forbidden says what to declare.
func TestPruneWithoutPermission(t *testing.T) {
	s := onStreet(t)
	shop := s.shop("a")
	s.apply(web, shop, "1", "2")
	account := s.cluster.ServiceAccount(t, s.namespace)
	account.Allow(t, s.namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"children.example.com"}, Resources: []string{"shops"}, Verbs: []string{"get"}},
	)
	client := account.Client(t).WithFieldManager("shop").InNamespaces(s.namespace)
	yaretest.Eventually(t, func() error {
		_, err := web.Apply(s.ctx, client, shop, s.maps("1")...)
		if !kube.IsForbidden(err) || !strings.Contains(err.Error(), "controller.WriteVerbs in controller.Owns") {
			return fmt.Errorf("the error is %w", err)
		}
		return nil
	})
}
