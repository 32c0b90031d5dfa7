package cache

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// podPhase is what a controller may need of a Pod.
type podPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

func (podPhase) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }

// projected is a Cache on a fake API server that watches podPhase, or whole Pods.
type projected struct {
	*testing.T
	server *fakeserver.Server
	cache  *Cache
	client *kube.Client
}

func newProjected(t *testing.T, streams ...[]wire.Stream) *projected {
	p := &projected{T: t, server: fakeserver.New()}
	p.cache = New(p.server)
	t.Cleanup(p.cache.Close)
	p.client = p.server.Client().With(p.cache.Handler)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"app": "web"}}}
	pod.Spec.NodeName, pod.Status.Phase = "node-1", corev1.PodPending
	if _, err := kube.Apply(t.Context(), p.server.Client(), pod); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		open(t, t.Context(), p.cache, s[0], func(Change) {})
	}
	synctest.Wait()
	p.server.ForgetRequests()
	return p
}

// requireRequests fails unless n requests were sent since the last call, watches apart.
func (p *projected) requireRequests(n int, what string) {
	p.Helper()
	synctest.Wait()
	sent := []string{}
	for _, e := range p.server.Requests() {
		if e.Request.Verb != wire.VerbWatch {
			sent = append(sent, string(e.Request.Verb))
		}
	}
	p.server.ForgetRequests()
	if len(sent) != n {
		p.Errorf("%s sent %q, want %d requests", what, sent, n)
	}
}

func streamsOf[T any, P kube.ObjectOf[T]](t *testing.T) []wire.Stream {
	streams, err := kube.Everywhere[T, P](kube.NewClientFromHandler(nil)).Streams()
	if err != nil {
		t.Fatal(err)
	}
	return streams
}

func TestProjectionIsCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProjected(t, streamsOf[podPhase](t))
		read, err := kube.Get[podPhase](t.Context(), p.client, "ns", "a")
		if err != nil || read.Labels["app"] != "web" || read.ManagedFields != nil {
			t.Errorf("reading the projection: %+v, %v", read, err)
		}
		for each, err := range kube.Everywhere[podPhase](p.client).Each(t.Context()) {
			if err != nil || each.Name != "a" {
				t.Errorf("listing the projection: %+v, %v", each, err)
			}
		}
		p.requireRequests(0, "reading and listing a projection")
		for _, s := range p.cache.Stats() {
			if s.JSON >= 300 {
				t.Errorf("%d bytes of JSON are kept of one Pod", s.JSON)
			}
		}

		pod, err := kube.Get[corev1.Pod](t.Context(), p.client, "ns", "a")
		if err != nil || pod.Spec.NodeName != "node-1" {
			t.Errorf("reading the whole Pod: %+v, %v", pod, err)
		}
		p.requireRequests(1, "reading the whole object")

		// A read is as new as the program's own write of the whole type.
		if err := p.client.Delete(t.Context(), read, kube.DryRun()); err != nil {
			t.Error(err)
		}
		changed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"app": "db"}}}
		p.server.Stream(fakeserver.StreamID{Plural: "pods", Representation: streamsOf[podPhase](t)[0].Representation}).Freeze()
		if _, err := kube.Apply(t.Context(), p.client, changed); err != nil {
			t.Fatal(err)
		}
		p.requireRequests(2, "a delete and an apply")
		if read, err := kube.Get[podPhase](t.Context(), p.client, "ns", "a"); err != nil || read.Labels["app"] != "db" {
			t.Errorf("reading after the own write: %+v, %v", read, err)
		}
		p.requireRequests(0, "reading after the own write")
	})
}

func TestWholeObjectsServeProjections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProjected(t, streamsOf[corev1.Pod](t))
		read, err := kube.Get[podPhase](t.Context(), p.client, "ns", "a")
		if err != nil || read.Name != "a" {
			t.Errorf("reading the projection: %+v, %v", read, err)
		}
		p.requireRequests(0, "reading a projection of a whole object")
	})
}

// A write through a projection would delete the fields that the projection lacks.
func TestProjectionIsNotWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProjected(t)
		api := kube.Namespaced[podPhase](p.client, "ns")
		o := &podPhase{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1"}}
		_, created := api.Create(t.Context(), o)
		_, replaced := api.Replace(t.Context(), o)
		_, applied := api.Apply(t.Context(), o)
		_, patched := api.Patch(t.Context(), "a", kube.MergePatch(map[string]any{}))
		_, scaled := api.SetScale(t.Context(), "a", 1)
		for what, err := range map[string]error{
			"create": created, "replace": replaced, "apply": applied, "patch": patched, "scale": scaled,
			"status": p.client.ApplyStatus(t.Context(), o),
		} {
			if err == nil || !strings.Contains(err.Error(), "projection") {
				t.Errorf("%s: %v, want an error that says why", what, err)
			}
		}
		p.requireRequests(0, "writes of a projection")
		if err := api.Delete(t.Context(), "a"); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
}

// An index of the whole type sees nothing of what a projection lacks.
func TestIndexOfProjection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProjected(t, streamsOf[podPhase](t))
		byPhase := kube.NewIndex("phase", func(o *podPhase) []string { return []string{string(o.Status.Phase)} })
		byNode := kube.NewIndex("node", func(o *corev1.Pod) []string { return []string{o.Spec.NodeName} })
		found, err := kube.Everywhere[podPhase](p.client).List(t.Context(), byPhase.Is(""))
		if err != nil || len(found) != 1 {
			t.Errorf("by the index of the projection: %d Pods, %v", len(found), err)
		}
		if _, err := kube.Everywhere[podPhase](p.client).List(t.Context(), byNode.Is("node-1")); err == nil {
			t.Error("the index of whole Pods was used for a projection")
		}
		found2, err := kube.Everywhere[corev1.Pod](p.client).List(t.Context(), byPhase.Is(""))
		if err != nil || len(found2) != 1 {
			t.Errorf("whole Pods by the index of the projection: %d Pods, %v", len(found2), err)
		}
	})
}
