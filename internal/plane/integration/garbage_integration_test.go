package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

const group = "integration.yare.dev"

type (
	followedSpec     struct{}
	followedNextSpec struct{}
	propagatedSpec   struct{}
	emptiedSpec      struct{}
	withdrawnSpec    struct{}

	// Each kind belongs to one test, which defines it.
	followed     = kube.CustomResource[followedSpec, kube.None]
	followedNext = kube.CustomResource[followedNextSpec, kube.None]
	propagated   = kube.CustomResource[propagatedSpec, kube.None]
	emptied      = kube.CustomResource[emptiedSpec, kube.None]
	withdrawn    = kube.CustomResource[withdrawnSpec, kube.None]
)

func (followedSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Followed", Plural: "followeds"}
}

func (followedNextSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "FollowedNext", Plural: "followednexts"}
}

func (propagatedSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Propagated", Plural: "propagateds"}
}

func (emptiedSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Emptied", Plural: "emptieds"}
}

func (withdrawnSpec) Definition() kube.Definition {
	return kube.Definition{Group: group, Version: "v1", Kind: "Withdrawn", Plural: "withdrawns"}
}

// define puts a kind in place.
func define[T any, P kube.ObjectOf[T]](t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	kind, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, kind)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// finalizer keeps the objects that have it.
const finalizer = group + "/wait"

func letGo[T any](t *testing.T, api kube.API[T], name string) {
	t.Helper()
	patch(t, api, name, map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

// The stock garbage collector looks for new kinds every 30 s. That the first kind is
// followed shows when it looked, and the second comes right after that: within the bound,
// the stock one would leave the second's children where they are, if not the first's.
func TestGarbageCollectorKnowsANewKindAtOnce(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	namespace := cluster.Namespace(t)
	follows[followed](t, cluster, namespace)
	follows[followedNext](t, cluster, namespace)
}

// follows makes a kind, owners and children of it, and deletes the owners.
func follows[T any, P kube.ObjectOf[T]](t *testing.T, cluster *yaretest.Cluster, namespace string) {
	t.Helper()
	const bound = 20 * time.Second
	client := cluster.Client(t)
	define[T, P](t, cluster)
	established := time.Now()
	customs, configMaps := kube.Namespaced[T, P](client, namespace), kube.Namespaced[corev1.ConfigMap](client, namespace)
	custom := func(name string) P {
		object := P(new(T))
		object.SetName(name)
		return object
	}
	// The API server itself lets clients wait for 2 s that create the first objects of a kind.
	owner := create(t, customs, custom("owner"))
	builtIn := create(t, configMaps, &corev1.ConfigMap{ObjectMeta: named("owner")})
	// Both ways: the kind as owner, and as child.
	create(t, customs, kube.OwnedBy(P(owner), custom("child")))
	create(t, customs, kube.OwnedBy(builtIn, custom("child-of-builtin")))
	create(t, configMaps, kube.OwnedBy(P(owner), &corev1.ConfigMap{ObjectMeta: named("child")}))
	ghosts := kube.OwnedBy(P(owner), &corev1.ConfigMap{ObjectMeta: named("child-of-a-ghost")})
	ghosts.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000000"
	create(t, configMaps, ghosts)

	deleted := time.Now()
	remove(t, customs, "owner", kube.Propagation(metav1.DeletePropagationBackground))
	remove(t, configMaps, "owner", kube.Propagation(metav1.DeletePropagationBackground))
	for {
		all, err := customs.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left := len(all)
		for _, name := range []string{"child", "child-of-a-ghost"} {
			if _, err := configMaps.Get(t.Context(), name); err == nil {
				left++
			} else if !kube.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		took := time.Since(established)
		if left == 0 {
			t.Logf("the children were gone %s after their owners were deleted, and %s after the kind was established",
				time.Since(deleted).Round(time.Millisecond), took.Round(time.Millisecond))
			return
		}
		if took > bound {
			t.Fatalf("%s after their kind was established, %d children of deleted owners are still there", took, left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestForegroundWaitsAndOrphansStay(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	define[propagated](t, cluster)
	owners, configMaps := kube.Namespaced[propagated](client, namespace), kube.Namespaced[corev1.ConfigMap](client, namespace)
	owner := create(t, owners, &propagated{ObjectMeta: named("owner")})
	for _, kept := range []bool{true, false} {
		custom, builtIn := &propagated{ObjectMeta: named(fmt.Sprintf("child-%t", kept))}, &corev1.ConfigMap{ObjectMeta: named(fmt.Sprintf("child-%t", kept))}
		if kept {
			custom.Finalizers, builtIn.Finalizers = []string{finalizer}, []string{finalizer}
		}
		create(t, owners, kube.OwnedBy(owner, custom))
		create(t, configMaps, kube.OwnedBy(owner, builtIn))
	}
	remove(t, owners, "owner", kube.Propagation(metav1.DeletePropagationForeground))
	// What can go goes; what is held back holds back its owner.
	yaretest.WaitUntilGone(t, owners, "child-false")
	yaretest.WaitUntilGone(t, configMaps, "child-false")
	deleted := func(o kube.Object) error {
		if o.GetDeletionTimestamp() == nil {
			return fmt.Errorf("%s is not being deleted", o.GetName())
		}
		return nil
	}
	stays := func() {
		t.Helper()
		if err := deleted(get(t, owners, "owner")); err != nil {
			t.Error(err)
		}
	}
	yaretest.WaitFor(t, owners, "child-true", func(c *propagated) error { return deleted(c) })
	yaretest.WaitFor(t, configMaps, "child-true", func(c *corev1.ConfigMap) error { return deleted(c) })
	stays()
	letGo(t, configMaps, "child-true")
	yaretest.WaitUntilGone(t, configMaps, "child-true")
	stays()
	letGo(t, owners, "child-true")
	yaretest.WaitUntilGone(t, owners, "owner")

	// Orphaned children lose their owner, and stay.
	owner = create(t, owners, &propagated{ObjectMeta: named("owner")})
	create(t, owners, kube.OwnedBy(owner, &propagated{ObjectMeta: named("orphan")}))
	create(t, configMaps, kube.OwnedBy(owner, &corev1.ConfigMap{ObjectMeta: named("orphan")}))
	remove(t, owners, "owner", kube.Propagation(metav1.DeletePropagationOrphan))
	yaretest.WaitUntilGone(t, owners, "owner")
	alone := func(o kube.Object) error {
		if o.GetDeletionTimestamp() != nil || len(o.GetOwnerReferences()) > 0 {
			return fmt.Errorf("%s is owned by %v, deleted at %v", o.GetName(), o.GetOwnerReferences(), o.GetDeletionTimestamp())
		}
		return nil
	}
	if err := errors.Join(alone(get(t, owners, "orphan")), alone(get(t, configMaps, "orphan"))); err != nil {
		t.Error(err)
	}
}

// A Deployment takes its ReplicaSets and Pods along.
func TestOwnersTakeTheirChildrenAlong(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	namespace := cluster.Namespace(t)
	cluster.Kubectl(t, "", "create", "deployment", "web", "--image=example.com/image", "--replicas=2", "--namespace", namespace)
	cluster.Kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=60s", "--namespace", namespace)
	cluster.Kubectl(t, "", "delete", "deployment", "web", "--namespace", namespace)
	yaretest.Eventually(t, func() error {
		if out := cluster.Kubectl(t, "", "get", "replicasets,pods", "-o", "name", "--namespace", namespace); out != "" {
			return fmt.Errorf("left: %s", out)
		}
		return nil
	})
}

func TestNamespaceTakesItsObjectsAlong(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client := cluster.Client(t)
	define[emptied](t, cluster)
	namespaces := kube.Everywhere[corev1.Namespace](client)
	namespace := create(t, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "emptied-"}}).Name
	objects := kube.Namespaced[emptied](client, namespace)
	create(t, podsOf(t, client, namespace), newPod("a"))
	create(t, objects, &emptied{ObjectMeta: named("free")})
	create(t, objects, &emptied{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{finalizer}}})
	remove(t, namespaces, namespace)
	yaretest.WaitUntilGone(t, objects, "free")
	yaretest.WaitFor(t, namespaces, namespace, func(n *corev1.Namespace) error {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it does not say that it waits for a finalizer: %+v", n.Status)
	})
	letGo(t, objects, "held")
	yaretest.WaitUntilGone(t, namespaces, namespace)
}

func TestDefinitionTakesItsObjectsAlong(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	define[withdrawn](t, cluster)
	objects := kube.Namespaced[withdrawn](cluster.Client(t), cluster.Namespace(t))
	create(t, objects, &withdrawn{ObjectMeta: named("a")})
	cluster.Kubectl(t, "", "delete", "crd", "withdrawns."+group, "--timeout=60s")
	yaretest.Eventually(t, func() error {
		if _, err := objects.List(t.Context()); !kube.IsNoResource(err) && !kube.IsNotFound(err) {
			return fmt.Errorf("it is still served: %w", err)
		}
		return nil
	})
	define[withdrawn](t, cluster)
	if all, err := objects.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("made again, there are %d objects, %v", len(all), err)
	}
}
