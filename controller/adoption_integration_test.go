package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// nursery is a controller at work on a real server: each Garden applies a ConfigMap as its
// child, under the name in its annotation or its own.
type nursery struct {
	*testing.T
	client  *kube.Client
	garden  func(name string) *Garden
	results journal
}

func onNursery(t *testing.T, watched bool, options ...controller.Option) *nursery {
	t.Helper()
	t.Parallel()
	n := &nursery{T: t}
	n.client, n.garden = onServer(t)
	options = append(options, controller.OnResult(n.results.result), controller.FieldManager("us"))
	if watched {
		options = append(options, controller.Owns[corev1.ConfigMap]())
	}
	start(t, n.client, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		child := n.child(g.Name)
		if name := g.Annotations["child"]; name != "" {
			child.Name = name
		}
		child.Data = map[string]string{"greeting": "hello"}
		_, err := kube.Apply(ctx, c, kube.OwnedBy(g, child))
		return controller.Done(), err
	}, options...))
	return n
}

func (n *nursery) child(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.garden(name).Namespace, Name: name}}
}

func (n *nursery) get(name string) (*corev1.ConfigMap, error) {
	return kube.Get[corev1.ConfigMap](n.Context(), n.client, n.garden(name).Namespace, name)
}

// owned waits until the child is owned by owner alone, and has its data.
func (n *nursery) owned(name string, owner types.UID) (child *corev1.ConfigMap) {
	n.Helper()
	yaretest.Eventually(n.T, func() (err error) {
		if child, err = n.get(name); err != nil {
			return err
		}
		if o := child.OwnerReferences; len(o) != 1 || o[0].UID != owner || child.Data["greeting"] != "hello" {
			return fmt.Errorf("the child has the owners %v and the data %v", o, child.Data)
		}
		return nil
	})
	return child
}

// refused waits until an apply for the Garden was refused.
func (n *nursery) refused(garden string) {
	n.Helper()
	yaretest.Eventually(n.T, func() error {
		if results := n.results.drainResults(); !slices.ContainsFunc(results, func(r controller.Result) bool {
			return r.Object.Name == garden && errors.Is(r.Err, kube.ErrForeignChild)
		}) {
			return fmt.Errorf("no apply was refused, the results are %v", results)
		}
		return nil
	})
}

// awaitGarbageCollector waits until the garbage collector has deleted another child, and so
// has also decided about everything that happened before.
func (n *nursery) awaitGarbageCollector() {
	n.Helper()
	other := create(n.T, n.client, n.garden("kew"))
	n.owned("kew", other.UID)
	remove(n.T, n.client, other)
	yaretest.Eventually(n.T, func() error {
		if _, err := n.get("kew"); !kube.IsNotFound(err) {
			return fmt.Errorf("the child is still there: %v", err)
		}
		return nil
	})
}

// Promise 22 on a real server: somebody else's ConfigMap of the child's name stays as it is,
// and stays when the owner goes. It went with the owner.
func TestAdoptionOfAForeignObject(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched %t", watched), func(t *testing.T) {
			n := onNursery(t, watched)
			theirs := n.child("eden")
			theirs.Data = map[string]string{"precious": "data", "greeting": "mine"}
			theirs = create(t, n.client, theirs)
			owner := create(t, n.client, n.garden("eden"))
			n.refused("eden")
			remove(t, n.client, owner)
			n.awaitGarbageCollector()
			now, err := n.get("eden")
			if err != nil || now.UID != theirs.UID || now.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("somebody else's ConfigMap was %v at %s, and is %v at %s (%v)", theirs.Data, theirs.ResourceVersion, now.Data, now.ResourceVersion, err)
			}
		})
	}
}

// Promise 22 on a real server: of two owners that apply one name, the first one has the child.
func TestAdoptionOfAnotherOwnersChild(t *testing.T) {
	n := onNursery(t, true)
	first := create(t, n.client, n.garden("first"))
	child := n.owned("first", first.UID)
	second := n.garden("second")
	second.Annotations = map[string]string{"child": "first"}
	create(t, n.client, second)
	n.refused("second")
	if now := n.owned("first", first.UID); now.ResourceVersion != child.ResourceVersion {
		t.Errorf("the child of the first owner was changed")
	}
}

// Promise 22 on a real server: an owner that is created again gets a child of its own, or its
// former child if the former child was left behind on purpose.
func TestAdoptionByARecreatedOwner(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			n := onNursery(t, true)
			old := create(t, n.client, n.garden("eden"))
			before := n.owned("eden", old.UID)
			isLeftBehind := func() bool {
				child, err := n.get("eden")
				return err == nil && len(child.OwnerReferences) == 0
			}
			for {
				if err := n.client.Delete(t.Context(), old, kube.Propagation(policy)); err != nil {
					t.Fatal(err)
				}
				yaretest.WaitUntilGone(t, kube.Namespaced[Garden](n.client, old.Namespace), old.Name)
				if policy != metav1.DeletePropagationOrphan || isLeftBehind() {
					break
				}
				// The garbage collector leaves behind only the children that it knows of, and
				// did not know of this one yet.
				old = create(t, n.client, n.garden("eden"))
				before = n.owned("eden", old.UID)
				n.awaitGarbageCollector()
			}
			var fresh *Garden
			yaretest.Eventually(t, func() (err error) {
				fresh, err = kube.Everywhere[Garden](n.client).Create(t.Context(), n.garden("eden"))
				return err
			})
			after := n.owned("eden", fresh.UID)
			if kept := after.UID == before.UID; kept != (policy == metav1.DeletePropagationOrphan) {
				t.Errorf("the former child was kept: %t", kept)
			}
		})
	}
}

// Promise 22 on a real server: what comes from a backup, with new uids and without managedFields,
// is a child again, although the garbage collector may be quicker.
func TestAdoptionOfARestoredChild(t *testing.T) {
	n := onNursery(t, true)
	owner := n.garden("eden")
	owner.UID = "in-the-backup"
	create(t, n.client.WithFieldManager("restore"), kube.OwnedBy(owner, n.child("eden")))
	fresh := create(t, n.client.WithFieldManager("restore"), n.garden("eden"))
	child := n.owned("eden", fresh.UID)
	n.awaitGarbageCollector()
	if now := n.owned("eden", fresh.UID); now.UID != child.UID {
		t.Error("the restored child was deleted after it had been taken back")
	}
}

// Promise 22 on a real server: a renamed field manager finds its children again.
func TestAdoptionAfterARenamedFieldManager(t *testing.T) {
	n := onNursery(t, true, controller.FormerFieldManagers("us-before"))
	child := n.child("eden")
	child.Data = map[string]string{"greeting": "good day"}
	before := apply(t, n.client.WithFieldManager("us-before"), child)
	owner := create(t, n.client, n.garden("eden"))
	if after := n.owned("eden", owner.UID); after.UID != before.UID {
		t.Error("the child was replaced")
	}
}

// What adoption relies on: a server ignores the resourceVersion of an apply that creates, and
// refuses the apply with a conflict if an object is there.
func TestApplyThatCanOnlyCreate(t *testing.T) {
	t.Parallel()
	c, garden := onServer(t)
	namespace := garden("").Namespace
	labels := map[string]string{"app": "a"}
	for name, apply := range map[string]func() error{
		"a custom resource": func() error {
			g := garden("new")
			g.ResourceVersion = "1"
			_, err := kube.Apply(t.Context(), c, g)
			return err
		},
		"a ConfigMap": func() error {
			_, err := kube.Apply(t.Context(), c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new", ResourceVersion: "1"}})
			return err
		},
		"a Deployment": func() error {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new", ResourceVersion: "1"}}
			d.Spec.Replicas = new(int32)
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels = labels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
			_, err := kube.Apply(t.Context(), c, d)
			return err
		},
	} {
		if err := apply(); err != nil {
			t.Errorf("%s that is not there: %v", name, err)
		}
		if err := apply(); !kube.IsConflict(err) {
			t.Errorf("%s that is there: %v, want a conflict", name, err)
		}
	}
}

// How a server refuses to create something in a namespace that is being deleted.
func TestTerminatingNamespaceOnARealServer(t *testing.T) {
	t.Parallel()
	c, garden := onServer(t)
	namespace := garden("").Namespace
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"test.example.com/hold"}}}
	create(t, c, held)
	if err := kube.Everywhere[corev1.Namespace](c).Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = kube.Namespaced[corev1.ConfigMap](c, namespace).Patch(context.Background(), "held", kube.JSONPatch(kube.RemoveAt("/metadata/finalizers")))
	})
	yaretest.Eventually(t, func() error {
		_, err := kube.Apply(t.Context(), c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}})
		if !kube.IsNamespaceTerminating(err) {
			return fmt.Errorf("an apply in a namespace that is being deleted led to: %v", err)
		}
		return nil
	})
}
