package ctrl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

func deployment(namespace, name string) *appsv1.Deployment {
	match := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: match},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: match}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: match}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		}},
	}
}

// What a client of controller-runtime does, the same client does by yare: each verb, each kind of patch, and each form of objects.
func TestClient(t *testing.T) {
	t.Parallel()
	config := clientgo.ToREST(yaretest.Shared(t).Config())
	bridge, err := ctrl.ForConfig(config)
	must(t, err)
	for name, newClient := range map[string]client.NewClientFunc{"theirs": client.New, "yare": bridge.NewClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := newClient(config, client.Options{})
			must(t, err)
			checkClient(t, c, yaretest.Shared(t).Namespace(t))
		})
	}
}

func checkClient(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	ctx := t.Context()
	key := client.ObjectKey{Namespace: namespace, Name: "web"}
	d := deployment(namespace, "web")
	dry := deployment(namespace, "dry")
	must(t, c.Create(ctx, dry, client.DryRunAll))
	if err := c.Get(ctx, client.ObjectKeyFromObject(dry), dry); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}
	must(t, c.Create(ctx, d, client.FieldOwner("maker")))
	if d.UID == "" || d.ManagedFields[0].Manager != "maker" {
		t.Errorf("the created object is %+v", d.ObjectMeta)
	}
	if err := c.Create(ctx, deployment(namespace, "web")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second create: %v", err)
	}
	if err := c.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bad"}}); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid object: %v", err)
	}
	stale := d.DeepCopy()
	// The controller of Deployments writes too.
	edit := func(write func() error) {
		t.Helper()
		yaretest.Eventually(t, func() error { return errors.Join(c.Get(ctx, key, d), write()) })
	}
	edit(func() error {
		d.Labels["team"] = "blue"
		return c.Update(ctx, d)
	})
	if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}

	// Patches.
	before := d.DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = "web:2"
	must(t, c.Patch(ctx, d, client.StrategicMergeFrom(before)))
	edit(func() error {
		before = d.DeepCopy()
		d.Annotations = map[string]string{"note": "a"}
		return c.Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err := c.Patch(ctx, stale, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	must(t, c.Patch(ctx, d, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels/tier","value":"front"}]`))))
	if d.Labels["tier"] != "front" || d.Annotations["note"] != "a" || d.Spec.Template.Spec.Containers[0].Image != "web:2" {
		t.Errorf("after the patches: %+v", d)
	}
	applied := corev1apply.ConfigMap("settings", namespace).WithData(map[string]string{"a": "1"})
	must(t, c.Apply(ctx, applied, client.FieldOwner("applier"), client.ForceOwnership))
	if *applied.UID == "" {
		t.Error("an apply does not return the object")
	}

	// Subresources.
	edit(func() error {
		d.Status.ObservedGeneration = 7
		return c.Status().Update(ctx, d)
	})
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	edit(func() error { return c.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale)) })
	must(t, c.SubResource("scale").Get(ctx, d, scale))
	must(t, c.Get(ctx, key, d))
	if scale.Spec.Replicas != 2 || *d.Spec.Replicas != 2 {
		t.Errorf("the scale is %+v, the Deployment has %d replicas", scale.Spec, *d.Spec.Replicas)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: d.Spec.Template.Spec}
	must(t, c.Create(ctx, pod))
	must(t, c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))

	// Forms.
	untyped := new(unstructured.Unstructured)
	untyped.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	edit(func() error {
		must(t, c.Get(ctx, key, untyped))
		must(t, unstructured.SetNestedField(untyped.Object, int64(1), "spec", "replicas"))
		return c.Update(ctx, untyped)
	})
	partial := new(metav1.PartialObjectMetadata)
	partial.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	must(t, c.Get(ctx, key, partial))
	beforeMetadata := partial.DeepCopy()
	partial.Annotations["note"] = "b"
	must(t, c.Patch(ctx, partial, client.MergeFrom(beforeMetadata)))
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	must(t, c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": "web"}))
	if len(list.Items) != 1 || list.Items[0].Annotations["note"] != "b" {
		t.Errorf("the list of metadata is %+v", list.Items)
	}
	if isNamespaced, err := c.IsObjectNamespaced(new(corev1.Node)); err != nil || isNamespaced {
		t.Errorf("a Node is namespaced: %t, %v", isNamespaced, err)
	}
	var node corev1.Node
	if err := c.Get(ctx, client.ObjectKey{Name: "none"}, &node); !apierrors.IsNotFound(err) {
		t.Errorf("a Node that is not there: %v", err)
	}

	// Deletions.
	if err := c.Delete(ctx, d, client.Preconditions{UID: new(types.UID("other"))}); !apierrors.IsConflict(err) {
		t.Errorf("a deletion of another object: %v", err)
	}
	must(t, c.Delete(ctx, d, client.Preconditions{UID: &d.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	must(t, c.DeleteAllOf(ctx, new(corev1.ConfigMap), client.InNamespace(namespace), client.MatchingLabels{"none": "x"}))
	must(t, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "settings"}, new(corev1.ConfigMap)))
	must(t, c.DeleteAllOf(ctx, new(corev1.ConfigMap), client.InNamespace(namespace)))
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "settings"}, new(corev1.ConfigMap)); !apierrors.IsNotFound(err) {
		t.Errorf("after a deletion of all: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Get(ended, key, d); !errors.Is(err, context.Canceled) {
		t.Errorf("a Get whose context has ended: %v", err)
	}
}

// A read by the client of the manager sees each write before it.
func TestReadsSeeOwnWrites(t *testing.T) {
	t.Parallel()
	config, namespace, ctx := clientgo.ToREST(yaretest.Shared(t).Config()), yaretest.Shared(t).Namespace(t), t.Context()
	requests := 0
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/configmaps") && r.Method == http.MethodGet {
				requests++
			}
			return next.RoundTrip(r)
		})
	})
	bridge, err := ctrl.ForConfig(counted)
	must(t, err)
	cache, err := bridge.NewCache(config, ctrlcache.Options{})
	must(t, err)
	c, err := bridge.NewClient(config, client.Options{Cache: &client.CacheOptions{Reader: cache}})
	must(t, err)
	start(t, cache)
	must(t, c.List(ctx, new(corev1.ConfigMapList)))
	before := requests
	object := configMap(namespace, "a", "0")
	must(t, c.Create(ctx, object))
	for n := range 50 {
		object.Data["owner"] = fmt.Sprint(n)
		must(t, c.Update(ctx, object))
		var got corev1.ConfigMap
		must(t, c.Get(ctx, client.ObjectKeyFromObject(object), &got))
		var list corev1.ConfigMapList
		must(t, c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"owner": "0"}))
		if got.Data["owner"] != fmt.Sprint(n) || len(list.Items) != 1 || list.Items[0].Data["owner"] != fmt.Sprint(n) {
			t.Fatalf("after the write %d: %v, %+v", n, got.Data, list.Items)
		}
	}
	must(t, c.Delete(ctx, object))
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), new(corev1.ConfigMap)); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
	if requests != before {
		t.Errorf("%d reads asked the server", requests-before)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
