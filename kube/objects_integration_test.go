package kube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

func TestConfigMapOnTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	api := kube.Namespaced[corev1.ConfigMap](c, namespace)

	created := must(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "1"}}))(t)
	if created.UID == "" || created.Kind != "ConfigMap" {
		t.Errorf("created %+v", created)
	}
	if _, err := api.Create(ctx, created); err == nil {
		t.Error("an object with a resourceVersion was created")
	}
	_, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	if !kube.IsAlreadyExists(err) {
		t.Errorf("created again: %v", err)
	}
	live := must(api.Get(ctx, "c"))(t)
	if diff := cmp.Diff(created, live); diff != "" {
		t.Error(diff)
	}
	live.Data["k"] = "2"
	must(api.Replace(ctx, live))(t)
	if _, err := api.Replace(ctx, live); !kube.IsConflict(err) || kube.IsApplyConflict(err) {
		t.Errorf("replaced an old version: %v", err)
	}
	patched := must(api.Patch(ctx, "c", kube.MergePatch(map[string]any{"data": map[string]any{"k": nil, "l": "3"}})))(t)
	if diff := cmp.Diff(map[string]string{"l": "3"}, patched.Data); diff != "" {
		t.Error(diff)
	}
	must(api.Patch(ctx, "c", kube.StrategicPatch(map[string]any{"data": map[string]any{"m": "4"}})))(t)
	patched = must(api.Patch(ctx, "c", kube.JSONPatch(kube.TestAt("/data/m", "4"), kube.ReplaceAt("/data/m", ""), kube.AddAt("/data/n", "5"), kube.RemoveAt("/data/l"))))(t)
	if diff := cmp.Diff(map[string]string{"m": "", "n": "5"}, patched.Data); diff != "" {
		t.Error(diff)
	}
	if _, err := api.Patch(ctx, "c", kube.JSONPatch(kube.TestAt("/data/m", "no"))); !kube.IsInvalid(err) {
		t.Errorf("a test that fails: %v", err)
	}
	if _, err := api.Get(ctx, "none"); !kube.IsNotFound(err) || kube.IsNoResource(err) {
		t.Errorf("got what is not there: %v", err)
	}

	must(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, kube.DryRun()))(t)
	generated := must(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "gen-"}}))(t)
	if !strings.HasPrefix(generated.Name, "gen-") {
		t.Errorf("generated the name %q", generated.Name)
	}
	list := must(api.List(ctx, kube.Label("a", "b"), kube.Field("metadata.namespace", namespace)))(t)
	if len(list) != 1 || list[0].Name != "c" || list[0].Kind != "ConfigMap" {
		t.Errorf("listed %v", list)
	}
	// The items of a built-in list have no kind of their own.
	dynamic := must(kube.Dynamic(c, api.Resource(), namespace).List(ctx, kube.Label("a", "b")))(t)
	if len(dynamic) != 1 || dynamic[0].GetKind() != "ConfigMap" {
		t.Errorf("listed %v", dynamic)
	}
	metadata := kube.Metadata(c, api.Resource(), namespace)
	partial := must(metadata.List(ctx, kube.Label("a", "b")))(t)
	if len(partial) != 1 || partial[0].Kind != "ConfigMap" || partial[0].Labels["a"] != "b" {
		t.Errorf("listed %v", partial)
	}
	must(metadata.Patch(ctx, "c", kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": "y"}}})))(t)

	other := created.DeepCopy()
	other.UID = "another"
	if err := c.Delete(ctx, other); !kube.IsUIDConflict(err) || kube.IgnoreNotFound(err) != nil {
		t.Errorf("deleted another of its name: %v", err)
	}
	if err := api.Delete(ctx, "c", kube.RequireUID("another")); !kube.IsConflict(err) {
		t.Errorf("deleted another uid: %v", err)
	}
	if err := api.Delete(ctx, "c", kube.RequireResourceVersion("1")); !kube.IsConflict(err) {
		t.Errorf("deleted an old version: %v", err)
	}
	if err := api.Delete(ctx, "c", kube.DryRun()); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, created); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, created); !kube.IsNotFound(err) {
		t.Errorf("it is gone already: %v", err)
	}
	if err := api.Delete(ctx, "c"); !kube.IsNotFound(err) {
		t.Errorf("it is gone already: %v", err)
	}
	must(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}))(t)
	if err := metadata.Delete(ctx, "m"); err != nil {
		t.Error(err)
	}
	must(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{"a": "b"}}}))(t)
	if err := api.DeleteAll(ctx, []kube.Selector{kube.Label("a", "b")}); err != nil {
		t.Error(err)
	}
	if left := must(api.List(ctx, kube.Label("a", "b")))(t); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if must(api.Get(ctx, generated.Name))(t).Name == "" {
		t.Error("the selector did not spare the others")
	}
}

// Promise 10: the server records exactly the fields that the author set as owned, and removes a
// field left out of the next apply.
func TestApplyOwnsWhatItSaid(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t).WithFieldManager("author"), cluster.Namespace(t), t.Context()
	zero := int32(0)
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "c", Image: "i",
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1000m")}},
					}},
					Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}
	live := must(kube.Apply(ctx, c, deployment))(t)
	const container, volume = `.spec.template.spec.containers[k:{"name":"c"}]`, `.spec.template.spec.volumes[k:{"name":"v"}]`
	want := []string{
		".metadata.labels.app", ".spec.replicas", ".spec.selector",
		".spec.template.metadata.labels.app",
		container, container + ".image", container + ".name", container + ".resources.limits.cpu",
		volume, volume + ".emptyDir", volume + ".name",
	}
	if diff := cmp.Diff(want, owned(t, live, "author", "")); diff != "" {
		t.Error(diff)
	}
	if *live.Spec.Replicas != 0 {
		t.Errorf("replicas are %d", *live.Spec.Replicas)
	}
	deployment.Labels = nil
	deployment.Spec.Template.Spec.Containers[0].Resources.Limits = nil
	live = must(kube.Apply(ctx, c, deployment))(t)
	if len(live.Labels) != 0 || len(live.Spec.Template.Spec.Containers[0].Resources.Limits) != 0 {
		t.Errorf("what was left out is still there: %v", live)
	}
	// Bug: an apply of an object that was read took over the fields of all managers.
	live.Spec.Replicas = nil
	if _, err := kube.Apply(ctx, c, live); err == nil {
		t.Error("what was read can be applied")
	}

	// Another manager, another wish.
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}, Spec: deployment.Spec}
	other.Spec.Template = *deployment.Spec.Template.DeepCopy()
	other.Spec.Template.Spec.Containers[0].Image = "j"
	_, err := kube.Apply(ctx, c, other, kube.FieldManager("other"), kube.NoForce())
	if !kube.IsApplyConflict(err) {
		t.Errorf("took a field of another manager: %v", err)
	}
	live = must(kube.Apply(ctx, c, other, kube.FieldManager("other")))(t)
	if live.Spec.Template.Spec.Containers[0].Image != "j" {
		t.Error("by default an apply takes over")
	}

	api := kube.Namespaced[appsv1.Deployment](c, namespace)
	if got := must(api.SetScale(ctx, "web", 3))(t); got.Spec.Replicas != 3 {
		t.Errorf("scaled to %+v", got)
	}
	if got := must(api.GetScale(ctx, "web"))(t); got.Spec.Replicas != 3 || got.Status.Selector != "app=web" {
		t.Errorf("the scale is %+v", got)
	}
	if err := api.Delete(ctx, "web", kube.Propagation(metav1.DeletePropagationForeground), kube.GracePeriod(0)); err != nil {
		t.Error(err)
	}
}
func TestCustomResourceOnTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineShip(t, cluster)
	warned := make(chan string, 9)
	config := cluster.Config()
	config.OnWarning = func(_ context.Context, _ *wire.Request, text string) { warned <- text }
	c := must(kube.NewClient(config))(t).WithFieldManager("author")
	namespace, ctx := cluster.Namespace(t), t.Context()
	api := kube.Namespaced[ship](c, namespace)
	masts := int32(3)
	meta := metav1.ObjectMeta{Name: "pequod", Namespace: namespace}

	// Bug: the rig, which the schema requires, was left out because it was empty.
	live := must(kube.Apply(ctx, c, &ship{ObjectMeta: meta, Spec: shipSpec{Name: "Pequod", Masts: &masts, Cargo: map[string]string{"oil": ""}}}))(t)
	if diff := cmp.Diff([]string{".spec.cargo.oil", ".spec.masts", ".spec.name", ".spec.rig"}, owned(t, live, "author", "")); diff != "" {
		t.Error(diff)
	}
	live = must(kube.Apply(ctx, c, &ship{ObjectMeta: meta, Spec: shipSpec{Name: "Pequod", Masts: &masts}}))(t)
	if live.Spec.Cargo != nil {
		t.Errorf("the cargo is still there: %v", live.Spec.Cargo)
	}

	stale := *live
	live.Status = shipStatus{Afloat: true, Replicas: 3}
	if err := c.ApplyStatus(ctx, live); err != nil {
		t.Fatal(err)
	}
	got := must(api.Get(ctx, "pequod"))(t)
	if !got.Status.Afloat || got.Spec.Masts == nil {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{".status.afloat", ".status.replicas"}, owned(t, got, "author", "status")); diff != "" {
		t.Error(diff)
	}
	if err := c.ApplyStatus(ctx, &stale); !kube.IsConflict(err) {
		t.Errorf("the status of an old version was written: %v", err)
	}
	got = must(api.Get(ctx, "pequod"))(t)
	got.Status = shipStatus{}
	if err := c.ApplyStatus(ctx, got); err != nil {
		t.Fatal(err)
	}
	if got = must(api.Status().Get(ctx, "pequod"))(t); got.Status != (shipStatus{}) {
		t.Errorf("an empty status left %+v", got.Status)
	}
	got.Status.Afloat = true
	if got = must(api.Status().Replace(ctx, got))(t); !got.Status.Afloat {
		t.Error("the status was not replaced")
	}
	if scale := must(api.SetScale(ctx, "pequod", 5))(t); scale.Spec.Replicas != 5 {
		t.Errorf("scaled to %+v", scale)
	}

	_, err := api.Create(ctx, &ship{ObjectMeta: metav1.ObjectMeta{Name: "long"}, Spec: shipSpec{Name: strings.Repeat("x", 21)}})
	if !kube.IsInvalid(err) || !strings.Contains(err.Error(), `create ships.kube-test.yare.dev "`+namespace+`/long": `) {
		t.Errorf("the schema was not kept: %v", err)
	}
	dynamic := kube.Dynamic(c, api.Resource(), namespace)
	loose := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "loose"}, "spec": map[string]any{"name": "l", "rig": map[string]any{}, "unknown": int64(1)},
	}}
	if _, err := dynamic.Create(ctx, loose, kube.Strict()); !kube.HasReason(err, metav1.StatusReasonBadRequest) {
		t.Errorf("an unknown field was taken: %v", err)
	}
	created := must(dynamic.Create(ctx, loose))(t)
	if created.GetKind() != "Ship" {
		t.Errorf("created %v", created)
	}
	if text := <-warned; !strings.Contains(text, `unknown field "spec.unknown"`) {
		t.Errorf("the server warned: %s", text)
	}
	unstructured.RemoveNestedField(loose.Object, "spec", "unknown")
	must(dynamic.Apply(ctx, loose))(t)
	wrong := &ship{ObjectMeta: metav1.ObjectMeta{Name: "loose", Namespace: namespace, UID: "another"}, Spec: shipSpec{Name: "l"}}
	if _, err := kube.Apply(ctx, c, wrong); !kube.IsUIDConflict(err) {
		t.Errorf("applied to another uid: %v", err)
	}
	// Bug: a status was not written while others changed the object.
	busy := must(api.Get(ctx, "loose"))(t)
	must(api.Patch(ctx, "loose", kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"heartbeat": "1"}}})))(t)
	for _, replicas := range []int32{1, 2} {
		busy.Status.Replicas = replicas
		if err := c.ApplyStatus(ctx, busy); err != nil {
			t.Errorf("the status of an object that others annotate: %v", err)
		}
	}
	if live := must(api.Get(ctx, "loose"))(t); live.Status.Replicas != 2 || live.Annotations["heartbeat"] != "1" {
		t.Errorf("the live object is %+v", live)
	}

	child := must(kube.Apply(ctx, c, kube.OwnedBy(got, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "log", Namespace: namespace}})))(t)
	if owner := metav1.GetControllerOf(child); owner == nil || owner.UID != got.UID || owner.Kind != "Ship" {
		t.Errorf("the child is owned by %+v", owner)
	}

	n := 0
	for event, err := range api.Watch(ctx, "", kube.Field("metadata.name", "pequod")) {
		if err != nil {
			t.Fatal(err)
		}
		switch n++; n {
		case 1:
			if event.Type != "ADDED" || event.Object.Spec.Name != "Pequod" {
				t.Fatalf("the first event is %+v", event)
			}
			if err := c.Delete(ctx, event.Object); err != nil {
				t.Fatal(err)
			}
			continue
		default:
			if event.Type == "DELETED" {
				break
			}
			continue
		}
		break
	}
}
func TestErrorsOfTheRealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()
	unknown := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "none.yare.dev", Version: "v1", Kind: "None"}, Plural: "nones"}
	for name, do := range map[string]func() error{
		"list": func() error { _, err := kube.Dynamic(c, unknown, "").List(ctx); return err },
		"get":  func() error { _, err := kube.Dynamic(c, unknown, namespace).Get(ctx, "x"); return err },
		"watch": func() error {
			for _, err := range kube.Dynamic(c, unknown, "").Watch(ctx, "") {
				return err
			}
			return nil
		},
		"apply": func() error {
			u := &unstructured.Unstructured{}
			u.SetName("x")
			_, err := kube.Dynamic(c, unknown, namespace).Apply(ctx, u)
			return err
		},
		"delete": func() error { return kube.Dynamic(c, unknown, namespace).Delete(ctx, "x") },
	} {
		if err := do(); !kube.IsNoResource(err) || kube.IsNotFound(err) {
			t.Errorf("%s of an unknown resource: %v", name, err)
		}
	}
	_, err := kube.Namespaced[corev1.ConfigMap](c, "no-such-namespace").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	if !kube.IsNotFound(err) || kube.IsNoResource(err) {
		t.Errorf("created in a namespace that is not there: %v", err)
	}
	config := cluster.Config()
	config.BearerToken, config.BearerTokenFile, config.Username, config.Password = "wrong", "", "", ""
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = nil, nil, "", ""
	stranger := must(kube.NewClient(config))(t)
	if _, err := kube.Get[corev1.Namespace](ctx, stranger, "", namespace); !kube.HasReason(err, metav1.StatusReasonUnauthorized) {
		t.Errorf("a wrong token: %v", err)
	}
	config = cluster.Config()
	config.Impersonate.UserName = "nobody"
	nobody := must(kube.NewClient(config))(t)
	if _, err := kube.Namespaced[corev1.Secret](nobody, namespace).List(ctx); !kube.IsForbidden(err) {
		t.Errorf("nobody lists secrets: %v", err)
	}
}
