package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

// injected is the label of Pods that [injectAgent] has changed.
const injected = "example.com/injected"

// injectAgent adds a label and a container to a Pod, unless they are there.
func injectAgent(_ context.Context, p *corev1.Pod, _ *kube.Client) error {
	p.Labels[injected] = "true"
	if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "agent" }) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "agent", Image: "example.com/agent"})
	}
	return nil
}

// injector returns a part that changes the Pods with the label inject.
func injector(mutate func(context.Context, *corev1.Pod, *kube.Client) error) operator.Part {
	return webhook.MutateForeign(webhook.ForeignOptions{Objects: "inject=yes", OnCreate: true}, mutate)
}

// newPod returns a Pod with a container and a label inject, which neither a scheduler nor a kubelet writes.
func newPod(namespace, name, inject string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"inject": inject}},
		Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}
}

// containersOf returns the names of the containers of a Pod.
func containersOf(p *corev1.Pod) string {
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// An injector changes the selected Pods alone, in a program that defines no kind. Beside it, a second server-side apply of
// the same content changes nothing.
func TestInjection(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace, client := cluster.Namespace(t), cluster.Client(t).WithFieldManager("applier")
	yaretest.RunParts(t, cluster, injector(injectAgent))
	for inject, want := range map[string]string{"yes": "app agent", "no": "app"} {
		pod, err := kube.Create(t.Context(), client, newPod(namespace, "created-"+inject, inject))
		if err != nil {
			t.Fatal(err)
		}
		if got := containersOf(pod); got != want || (pod.Labels[injected] == "true") != (inject == "yes") {
			t.Errorf("a Pod with inject=%s has the containers %s and the labels %v", inject, got, pod.Labels)
		}
	}
	first, err := kube.Apply(t.Context(), client, newPod(namespace, "applied", "yes"))
	if err != nil || containersOf(first) != "app agent" {
		t.Fatalf("%v, %v", containersOf(first), err)
	}
	second, err := kube.Apply(t.Context(), client, newPod(namespace, "applied", "yes"))
	if err != nil || second.ResourceVersion != first.ResourceVersion {
		t.Errorf("the second apply of the same content: %v, version %s after %s", err, second.ResourceVersion, first.ResourceVersion)
	}
}

// A mutator that changes what an applier sets is undone by the next apply, unless it is called about updates too.
func TestMutationOfWhatAnApplierSets(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	for onUpdate, want := range map[bool]string{false: "example.com/app", true: "mirror.example.com/app"} {
		t.Run(fmt.Sprint(onUpdate), func(t *testing.T) {
			t.Parallel()
			namespace, client := cluster.Namespace(t), cluster.Client(t).WithFieldManager("applier")
			yaretest.RunParts(t, cluster, webhook.MutateForeign(webhook.ForeignOptions{Objects: "inject=yes", OnCreate: true, OnUpdate: onUpdate},
				func(_ context.Context, p *corev1.Pod, _ *kube.Client) error {
					for i := range p.Spec.Containers {
						p.Spec.Containers[i].Image = strings.Replace(p.Spec.Containers[i].Image, "example.com/", "mirror.example.com/", 1)
						p.Spec.Containers[i].Image = strings.Replace(p.Spec.Containers[i].Image, "mirror.mirror.", "mirror.", 1)
					}
					return nil
				}))
			first, err := kube.Apply(t.Context(), client, newPod(namespace, "applied", "yes"))
			if err != nil || first.Spec.Containers[0].Image != "mirror.example.com/app" {
				t.Fatalf("%s, %v", first.Spec.Containers[0].Image, err)
			}
			second, err := kube.Apply(t.Context(), client, newPod(namespace, "applied", "yes"))
			if err != nil || second.Spec.Containers[0].Image != want {
				t.Errorf("the image after the second apply is %s, not %s: %v", second.Spec.Containers[0].Image, want, err)
			}
			if isStored := second.ResourceVersion != first.ResourceVersion; isStored == onUpdate {
				t.Errorf("the second apply has stored a change: %v", isStored)
			}
		})
	}
}

// A validator is called about deletions, evictions and the subresources of Pods, with the Pod before and after.
func TestSubresourcesOfPods(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	var mu sync.Mutex
	var calls []string
	check := func(ctx context.Context, before, after *corev1.Pod, _ *kube.Client) error {
		c := webhook.CallOf(ctx)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, strings.TrimSpace(fmt.Sprintf("%s %s", c.Operation, c.Subresource)))
		switch {
		case before == nil || (after == nil) != (c.Operation == "DELETE" || c.Subresource == "eviction"):
			t.Errorf("%s %s has the Pods %v and %v", c.Operation, c.Subresource, before, after)
		case before.Labels["keep"] != "yes":
			return nil
		}
		return errors.New("the Pod is kept")
	}
	yaretest.RunParts(t, cluster,
		webhook.ValidateForeign(webhook.ForeignOptions{
			Namespaces: "kubernetes.io/metadata.name=" + namespace, OnUpdate: true, OnDelete: true,
			Subresources: []string{"status", "resize", "ephemeralcontainers", "eviction"},
		}, check))
	api := kube.Namespaced[corev1.Pod](client, namespace)
	cpu := corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("9")}
	node := &corev1.Node{ // without a kubelet
		ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + namespace}, Status: corev1.NodeStatus{Capacity: cpu, Allocatable: cpu},
	}
	if _, err := kube.Create(t.Context(), client, node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Delete(context.Background(), node) })
	for name, keep := range map[string]string{"kept": "yes", "free": "no"} {
		pod := newPod(namespace, name, "no")
		pod.Labels["keep"] = keep
		pod.Spec.NodeName = node.Name
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("10m")}
		if _, err := api.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(name, subresource, path string, value any) error {
		to := api
		if subresource != "" {
			to = api.Subresource(subresource)
		}
		_, err := to.Patch(t.Context(), name, kube.JSONPatch(kube.PatchOperation{Op: "add", Path: path, Value: value}))
		return err
	}
	for _, each := range []struct {
		call string
		do   func(name string) error
	}{
		{"", func(name string) error { return patch(name, "", "/metadata/finalizers", []string{"example.com/a"}) }},
		{"UPDATE", func(name string) error { return patch(name, "", "/metadata/labels/a", "b") }},
		{"UPDATE", func(name string) error { return patch(name, "", "/spec/containers/0/image", "b") }},
		{"UPDATE status", func(name string) error { return patch(name, "status", "/status/message", "bad") }},
		{"UPDATE resize", func(name string) error {
			return patch(name, "resize", "/spec/containers/0/resources/requests/cpu", "20m")
		}},
		{"UPDATE ephemeralcontainers", func(name string) error {
			return patch(name, "ephemeralcontainers", "/spec/ephemeralContainers", []any{map[string]any{"name": "debug", "image": "a", "terminationMessagePolicy": "File"}})
		}},
		{"CREATE eviction", func(name string) error {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{"All"}}
			_, err := kube.CreateSubresource[metav1.Status](t.Context(), api, name, "eviction", eviction)
			return err
		}},
		{"DELETE", func(name string) error { return api.Delete(t.Context(), name, kube.DryRun()) }},
	} {
		for _, name := range []string{"kept", "free"} {
			mu.Lock()
			calls = nil
			mu.Unlock()
			err := each.do(name)
			isRefused := err != nil && strings.Contains(err.Error(), "the Pod is kept")
			mu.Lock()
			got := strings.Join(slices.Compact(calls), ", ")
			mu.Unlock()
			if got != each.call || isRefused != (name == "kept" && each.call != "") || !isRefused && err != nil {
				t.Errorf("%s of the Pod %s: called %q, %v", each.call, name, got, err)
			}
		}
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "absent"}}
	if _, err := kube.CreateSubresource[metav1.Status](t.Context(), api, "absent", "eviction", eviction); !kube.IsNotFound(err) {
		t.Errorf("an eviction of no Pod: %v", err)
	}
}

// brook is a kind of another project with a scale subresource, and ownBrook is the same kind as the project defines it.
type (
	brookSpec struct {
		Replicas int32 `json:"replicas"`
	}
	ownBrookSpec brookSpec
	brook        = kube.CustomResource[brookSpec, brookSpec]
	ownBrook     = kube.CustomResource[ownBrookSpec, brookSpec]
)

func (brookSpec) Definition() kube.Definition {
	d := ownBrookSpec{}.Definition()
	d.Foreign = true
	return d
}

func (ownBrookSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "foreign.yare.dev", Version: "v1", Kind: "Brook", Scale: &kube.ScalePaths{},
	}
}

// A validator of a kind whose definition another project has is called about objects and about their scale.
func TestValidatorOfAForeignDefinition(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[ownBrook](t, cluster)
	namespace := cluster.Namespace(t)
	yaretest.RunParts(t, cluster, webhook.ValidateForeign(webhook.ForeignOptions{
		Namespaces: "kubernetes.io/metadata.name=" + namespace, OnCreate: true, OnUpdate: true, Subresources: []string{"scale"},
	}, func(ctx context.Context, before, after *brook, _ *kube.Client) error {
		if after.Spec.Replicas > 3 {
			return fmt.Errorf("%s: %d replicas are too many", strings.TrimSpace(webhook.CallOf(ctx).Operation+" "+webhook.CallOf(ctx).Subresource), after.Spec.Replicas)
		}
		if before != nil && before.Spec.Replicas != 1 {
			t.Errorf("the stored brook has %d replicas, not 1", before.Spec.Replicas)
		}
		return nil
	}))
	brooks := kube.Namespaced[brook](cluster.Client(t), namespace)
	create := func(name string, replicas int32) error {
		_, err := brooks.Create(t.Context(), &brook{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: brookSpec{replicas}})
		return err
	}
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, not %q", err, want)
		}
	}
	refused(create("a", 4), "CREATE: 4 replicas are too many")
	if err := create("a", 1); err != nil {
		t.Fatal(err)
	}
	_, err := brooks.SetScale(t.Context(), "a", 5)
	refused(err, "UPDATE scale: 5 replicas are too many")
	_, err = brooks.Patch(t.Context(), "a", kube.MergePatch(map[string]any{"spec": map[string]any{"replicas": 6}}))
	refused(err, "UPDATE: 6 replicas are too many")
	if _, err := brooks.SetScale(t.Context(), "a", 2); err != nil {
		t.Error(err)
	}
}

// Row 15: the operator of an injector is down while Pods of the whole cluster are created. First nobody listens, and then
// something takes the calls and never answers. No Pod is refused, or late by more than the timeout. Nobody is called about
// Pods that are not selected, nor in the namespaces of the control plane and of the operator.
func downWhilePodsAreCreated(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork) {
	s := newProcessSite(t, cluster, network, "pumps", "", "pumps-injector")
	s.isWide, s.isServed = true, func() error { return nil }
	s.apply("injector")
	pods := []*pod{s.start("injector"), s.start("injector")}
	namespaces := []string{s.users[0], cluster.Namespace(t), cluster.Namespace(t)}
	create := func(namespace, inject, want string) time.Duration {
		t.Helper()
		began := time.Now()
		p := newPod(namespace, "", inject)
		p.GenerateName = "pod-"
		p, err := kube.Create(t.Context(), s.client, p)
		if err != nil {
			t.Fatalf("a Pod in %s with inject=%s: %v", namespace, inject, err)
		}
		if got := containersOf(p); got != want {
			t.Errorf("a Pod in %s with inject=%s has the containers %q, not %q", namespace, inject, got, want)
		}
		return time.Since(began)
	}
	waitForInjection := func() {
		t.Helper()
		yaretest.Eventually(t, func() error {
			p, err := kube.Create(t.Context(), s.client, newPod(namespaces[0], "probe", "yes"), kube.DryRun())
			if err == nil && containersOf(p) != "app agent" {
				err = fmt.Errorf("it has the containers %s", containersOf(p))
			}
			return err
		})
	}
	guard := func(value string) error {
		_, err := kube.Create(t.Context(), s.client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaces[0], GenerateName: "guarded-", Labels: map[string]string{"guarded": value},
		}})
		return err
	}
	waitForInjection()
	yaretest.Eventually(t, func() error { return guard("yes") })
	for _, each := range namespaces {
		create(each, "yes", "app agent")
		create(each, "no", "app")
	}
	for _, each := range pods {
		each.Kill()
		network.remove(s.service, each.webhooks)
	}
	// FailBecause: what is selected must not pass unchecked.
	if err := guard("yes"); !kube.HasReason(err, metav1.StatusReasonInternalError) {
		t.Errorf("nobody has checked the ConfigMap: %v", err)
	}
	if err := guard("no"); err != nil {
		t.Errorf("a ConfigMap that is not selected: %v", err)
	}
	for range figure(10, 100) {
		for _, each := range namespaces {
			create(each, "yes", "app")
			create(each, "no", "app")
		}
	}
	hanging, calls := listenSilently(t)
	network.add(s.service, hanging)
	for _, each := range []struct{ namespace, inject string }{{namespaces[0], "no"}, {s.namespace, "yes"}, {"kube-system", "yes"}} {
		create(each.namespace, each.inject, "app")
	}
	if n := calls(); n > 0 {
		t.Errorf("there were %d calls about Pods that nobody may be called about", n)
	}
	fastest := time.Hour // a busy machine is late by itself
	for range 3 {
		fastest = min(fastest, create(namespaces[1], "yes", "app"))
	}
	if n := calls(); n == 0 || fastest > 6*time.Second {
		t.Errorf("there were %d calls, and a Pod took %s or more with a timeout of 2s", n, fastest)
	}
	network.remove(s.service, hanging)
	last := s.start("injector")
	waitForInjection()
	s.command("injector", "uninstall", "--namespace", s.namespace, "--yes")
	last.Kill()
	if _, err := kube.Get[admissionv1.MutatingWebhookConfiguration](t.Context(), s.client, "", "pumps."+s.namespace); !kube.IsNotFound(err) {
		t.Errorf("the configuration after the uninstall: %v", err)
	}
	yaretest.Eventually(t, func() error {
		p, err := kube.Create(t.Context(), s.client, newPod(namespaces[0], "probe", "yes"), kube.DryRun())
		if err == nil && containersOf(p) != "app" {
			err = fmt.Errorf("after the uninstall it has the containers %s", containersOf(p))
		}
		return err
	})
}

// Different programs may have webhooks of Pods with one name. Only another installation of the same program is noted.
func TestCheckOfForeignWebhooks(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	program := operator.Program{Parts: func() ([]operator.Part, error) { return []operator.Part{injector(injectAgent)}, nil }}
	for _, each := range []string{"foreign-checks", "other-program"} {
		c := &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: each + ".elsewhere", Labels: map[string]string{"app.kubernetes.io/name": each}},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "mutate.pods.core", SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
			}},
		}
		if _, err := kube.Create(t.Context(), client, c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Delete(context.Background(), c) })
	}
	status, _, stderr := operator.CallProgram(t.Context(), "foreign-checks", program, "manifests", "--image=i:1", "--check", "--kubeconfig", cluster.Kubeconfig())
	if status != 0 || !strings.Contains(stderr, "foreign-checks.elsewhere of somebody else has the webhook mutate.pods.core too") || strings.Contains(stderr, "other-program") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// A program with webhooks of Pods alone prints no definition. It may read the Pods that are evicted.
func TestManifestsOfForeignWebhooks(t *testing.T) {
	t.Parallel()
	o := webhook.ForeignOptions{Namespaces: "team", Subresources: []string{"eviction"}}
	eviction := webhook.ValidateForeign(o, func(context.Context, *corev1.Pod, *corev1.Pod, *kube.Client) error { return nil })
	for command, want := range map[string][]string{
		"permissions --webhooks :9443":                            {"  - pods\n  verbs:\n  - get\n"},
		"manifests --image i:1 --webhook-entries --namespace ops": {"name: mutate.pods.core\n", "- pods/eviction\n", "failurePolicy: Ignore\n", "      - kube-node-lease\n      - ops\n"},
	} {
		status, stdout, stderr := operator.Call(strings.Fields(command), injector(injectAgent), eviction)
		for _, each := range want {
			if status != 0 || !strings.Contains(stdout, each) || strings.Contains(stdout, "CustomResourceDefinition") {
				t.Errorf("%s: status %d, %q: %s\n%s", command, status, each, stdout, stderr)
			}
		}
	}
	wrong := webhook.MutateForeign(webhook.ForeignOptions{OnCreate: true}, injectAgent)
	if status, _, stderr := operator.Call([]string{"run", "--kubeconfig", operator.Nowhere(t)}, wrong); status == 0 || !strings.Contains(stderr, "the webhook mutate.pods.core: it has no selector") {
		t.Errorf("without a selector: status %d, %s", status, stderr)
	}
}

// listenSilently returns an address that takes connections and never answers, and how many it has taken so far.
func listenSilently(t *testing.T) (address string, count func() int) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var taken atomic.Int64
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			defer c.Close() // until the end of the test it stays
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
	})
	return listener.Addr().String(), func() int { return int(taken.Load()) }
}
