package integration

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

const (
	simulate       = "simulate.yare.dev/"
	outcome        = simulate + "outcome"
	readyAfter     = simulate + "ready-after"
	completeAfter  = simulate + "complete-after"
	terminateAfter = simulate + "terminate-after"
	exitCode       = simulate + "exit-code"
)

// podSpec returns the spec of a Pod with one container, whose image is never pulled.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}}}
}

// newPod returns a Pod with annotations, given as name, value, name, value, …
func newPod(name string, annotations ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}, Spec: podSpec()}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

// selected returns the labels of a workload's Pods, and the selector for them.
func selected(app string) (map[string]string, *metav1.LabelSelector) {
	labels := map[string]string{"app": app}
	return labels, &metav1.LabelSelector{MatchLabels: labels}
}

// podTemplate returns the Pod template of a workload.
func podTemplate(labels map[string]string, annotations ...string) corev1.PodTemplateSpec {
	p := newPod("", annotations...)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: p.Annotations}, Spec: p.Spec}
}

func create[T any](t *testing.T, api kube.API[T], object *T) *T {
	t.Helper()
	made, err := api.Create(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func get[T any](t *testing.T, api kube.API[T], name string) *T {
	t.Helper()
	object, err := api.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func patch[T any](t *testing.T, api kube.API[T], name string, change map[string]any) {
	t.Helper()
	if _, err := api.Patch(t.Context(), name, kube.MergePatch(change)); err != nil {
		t.Fatal(err)
	}
}

func remove[T any](t *testing.T, api kube.API[T], name string, options ...kube.DeleteOption) {
	t.Helper()
	if err := api.Delete(t.Context(), name, options...); err != nil {
		t.Fatal(err)
	}
}

// annotate sets annotations, given as name, value, name, value, …
func annotate(t *testing.T, pods kube.API[corev1.Pod], name string, annotations ...string) {
	t.Helper()
	patch(t, pods, name, map[string]any{"metadata": map[string]any{"annotations": newPod("", annotations...).Annotations}})
}

// waitForPod waits until a Pod is as it should be.
func waitForPod(t *testing.T, pods kube.API[corev1.Pod], name string, check func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	return yaretest.WaitFor(t, pods, name, func(p *corev1.Pod) error {
		if err := check(p); err != nil {
			return fmt.Errorf("Pod %s: %w; its status is %+v", name, err, p.Status)
		}
		return nil
	})
}

// runs returns a check that fails unless a Pod is Running, and Ready or not.
func runs(ready bool) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != corev1.PodRunning {
			return errors.New("it does not run")
		}
		if is := condition(p, corev1.PodReady).Status == corev1.ConditionTrue; is != ready {
			return fmt.Errorf("ready is %t", is)
		}
		return nil
	}
}

// ended returns a check that fails unless a Pod ended with this exit code.
func ended(code int32) func(*corev1.Pod) error {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	return func(p *corev1.Pod) error {
		if p.Status.Phase != phase {
			return fmt.Errorf("it is not %s", phase)
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Terminated == nil || c.State.Terminated.ExitCode != code {
				return fmt.Errorf("the container %s did not exit with %d", c.Name, code)
			}
		}
		return nil
	}
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}
