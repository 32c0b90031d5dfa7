package kube_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// A JSON patch with a test changes an object only if it is as expected: here the counter goes from 1 to 2 once, however
// often the program asks for it. A strategic patch merges lists by the keys that the type has.
func ExampleAPI_Patch() {
	ctx, client := context.Background(), fakeserver.New().Client()
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"},
		Data:       map[string]string{"count": "1", "old": "x"},
	}
	if _, err := kube.Create(ctx, client, settings); err != nil {
		fmt.Println(err)
	}
	maps := kube.Namespaced[corev1.ConfigMap](client, "default")
	count := []kube.PatchOperation{
		kube.TestAt("/data/count", "1"), kube.ReplaceAt("/data/count", "2"), kube.AddAt("/data/new", "y"), kube.RemoveAt("/data/old"),
	}
	for range 2 {
		live, err := maps.Patch(ctx, "settings", kube.JSONPatch(count...))
		if kube.IsInvalid(err) {
			fmt.Println("a test of the patch failed")
			continue
		}
		fmt.Println(live.Data, err)
	}

	var merge kube.Patch = kube.StrategicPatch(map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "web", "image": "nginx:1.28"}}, // the other containers stay
	}})
	strict := []kube.WriteOption{kube.DryRun(), kube.Strict(), kube.FieldManager("upgrade")} // nothing is stored
	_, err := kube.Namespaced[corev1.Pod](client, "default").Patch(ctx, "web", merge, strict...)
	fmt.Println(kube.IsNotFound(err))
	// Output:
	// map[count:2 new:y] <nil>
	// a test of the patch failed
	// true
}

// A deletion names the object that the program has read, so that a new object of the same name stays. The empty uid of an
// object that was not read is no precondition.
func ExampleRequireUID() {
	ctx, client := context.Background(), fakeserver.New().Client()
	maps := kube.Namespaced[corev1.ConfigMap](client, "default")
	read, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	if err != nil {
		fmt.Println(err)
	}
	options := []kube.DeleteOption{
		kube.RequireUID(read.UID), kube.RequireResourceVersion(read.ResourceVersion), kube.GracePeriod(5 * time.Second),
		kube.Propagation(metav1.DeletePropagationForeground), // its children go first
	}
	fmt.Println(maps.Delete(ctx, "web", options...))
	fmt.Println(kube.IgnoreNotFound(maps.Delete(ctx, "web", options...)))
	// A dry run goes through all checks of the server.
	var dry kube.DryRunOption = kube.DryRun()
	fmt.Println(maps.DeleteAll(ctx, []kube.Selector{kube.Everything()}, dry))
	// Output:
	// <nil>
	// <nil>
	// <nil>
}

// An apply takes over the fields of other managers, unless NoForce is given. It never makes somebody else's object a
// child, unless Adopt is given.
func ExampleAdopt() {
	ctx, server := context.Background(), fakeserver.New()
	named := func(name, color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"color": color}}
	}
	helm, us := server.Client().WithFieldManager("helm"), server.Client().WithFieldManager("us")
	owner, err := kube.Apply(ctx, us, named("owner", "red"))
	if err != nil {
		fmt.Println(err)
	}
	if _, err := kube.Apply(ctx, helm, named("theirs", "red")); err != nil {
		fmt.Println(err)
	}
	_, err = kube.Apply(ctx, us, named("theirs", "blue"), kube.NoForce())
	fmt.Println("conflict:", kube.IsApplyConflict(err))
	_, err = kube.Apply(ctx, us, kube.OwnedBy(owner, named("theirs", "red")))
	fmt.Println("foreign:", errors.Is(err, kube.ErrForeignChild))
	taken := []kube.ApplyOption{kube.Adopt()}
	child, err := kube.Apply(ctx, us, kube.OwnedBy(owner, named("theirs", "blue")), taken...)
	fmt.Println(child.OwnerReferences[0].Name, child.Data["color"], err)
	// Output:
	// conflict: true
	// foreign: true
	// owner blue <nil>
}

// Replace writes all fields of an object that was read. Status is the view of the status, and Subresource that of any
// other subresource. A handle has the calls of one kind, also Apply.
func ExampleAPI_Replace() {
	ctx, client := context.Background(), fakeserver.New().Client()
	pods := kube.Namespaced[corev1.Pod](client, "default")
	live, err := pods.Apply(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	if err != nil {
		fmt.Println(err)
	}
	live.Status.Phase = corev1.PodRunning
	live, err = pods.Status().Replace(ctx, live)
	fmt.Println(live.Status.Phase, err)
	resize := pods.Subresource("resize") // resize.Patch changes the resources of containers
	fmt.Println(resize.Err())            // what is wrong with a handle, which each of its calls returns too
	// Output:
	// Running <nil>
	// <nil>
}

// An eviction respects the disruption budgets of the Pod: 429 asks to try later.
func ExampleCreateSubresource() {
	evict := func(ctx context.Context, client *kube.Client, namespace, name string) (isLater bool, err error) {
		pods := kube.Namespaced[corev1.Pod](client, namespace)
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		_, err = kube.CreateSubresource[metav1.Status](ctx, pods, name, "eviction", eviction)
		if kube.IsTooManyRequests(err) {
			return true, nil
		}
		return false, kube.IgnoreNotFound(err)
	}
	_ = evict
}

// The scale of a Deployment is its number of replicas. Nobody who may only scale needs the permission to change the rest.
func ExampleAPI_SetScale() {
	double := func(ctx context.Context, apps kube.API[WebApp], name string) (*kube.Scale, error) {
		scale, err := apps.GetScale(ctx, name)
		if err != nil {
			return nil, err
		}
		return apps.SetScale(ctx, name, 2*scale.Spec.Replicas)
	}
	_ = double
}
