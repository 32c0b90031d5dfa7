package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// podsIn returns the Pods of a new namespace, in which Pods can be created at once.
func podsIn(t *testing.T, cluster *yaretest.Cluster) kube.API[corev1.Pod] {
	t.Helper()
	return podsOf(t, cluster.Client(t), cluster.Namespace(t))
}

// podsOf waits until Pods can be created in a namespace.
func podsOf(t *testing.T, client *kube.Client, namespace string) kube.API[corev1.Pod] {
	t.Helper()
	yaretest.WaitFor(t, kube.Namespaced[corev1.ServiceAccount](client, namespace), "default",
		func(*corev1.ServiceAccount) error { return nil })
	return kube.Namespaced[corev1.Pod](client, namespace)
}

func TestPodRunsAndIsReady(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	p := newPod("a")
	p.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: "example.com/first:1"},
		{Name: "sidecar", Image: "example.com/sidecar:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		{Name: "second", Image: "example.com/second:1"},
	}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "example.com/other:1"})
	create(t, pods, p)
	p = waitForPod(t, pods, "a", runs(true))
	if p.Spec.NodeName == "" || p.Status.HostIP == "" || p.Status.StartTime == nil || p.Status.PodIP == "" {
		t.Errorf("its node is %q, its status %+v", p.Spec.NodeName, p.Status)
	}
	if ips := p.Status.PodIPs; len(ips) != 1 || ips[0].IP != p.Status.PodIP {
		t.Errorf("its addresses are %v", ips)
	}
	if p.Status.QOSClass != corev1.PodQOSBestEffort || p.Status.ObservedGeneration != p.Generation {
		t.Errorf("QoS class %s, observed generation %d of %d", p.Status.QOSClass, p.Status.ObservedGeneration, p.Generation)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if c := condition(p, kind); c.Status != corev1.ConditionTrue || c.LastTransitionTime.IsZero() {
			t.Errorf("the condition %s is %+v", kind, c)
		}
	}
	ids := map[string]bool{}
	check := func(declared []corev1.Container, statuses []corev1.ContainerStatus) {
		t.Helper()
		if len(statuses) != len(declared) {
			t.Fatalf("%d statuses of %d containers", len(statuses), len(declared))
		}
		for i, s := range statuses {
			ids[s.ContainerID] = true
			if s.Name != declared[i].Name || s.Image != declared[i].Image || s.ImageID == "" || s.ContainerID == "" || !s.Ready || s.RestartCount != 0 {
				t.Errorf("the container %s: %+v", declared[i].Name, s)
			}
			done := strings.HasSuffix(s.Name, "st") || s.Name == "second"
			if done && (s.State.Terminated == nil || s.State.Terminated.ExitCode != 0) ||
				!done && (s.State.Running == nil || s.Started == nil || !*s.Started) {
				t.Errorf("the container %s is %+v", s.Name, s.State)
			}
		}
	}
	check(p.Spec.InitContainers, p.Status.InitContainerStatuses)
	check(p.Spec.Containers, p.Status.ContainerStatuses)
	if len(ids) != 5 {
		t.Errorf("5 containers have %d ids", len(ids))
	}
}

func TestReadinessGateIsHonoured(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	p := newPod("a")
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
	create(t, pods, p)
	waitForPod(t, pods, "a", func(p *corev1.Pod) error {
		if c := condition(p, corev1.PodReady); condition(p, corev1.ContainersReady).Status != corev1.ConditionTrue || c.Reason != "ReadinessGatesNotReady" {
			return errors.New("it does not wait for its readiness gate")
		}
		return nil
	})
	opened := corev1.PodCondition{Type: "example.com/open", Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
	change := map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{opened}}}
	if _, err := pods.Status().Patch(t.Context(), "a", kube.StrategicPatch(change)); err != nil {
		t.Fatal(err)
	}
	waitForPod(t, pods, "a", runs(true))
}

// kubectl reports the cause.
func TestLogsAndExecSayThatItIsSimulated(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	namespace := cluster.Namespace(t)
	create(t, podsOf(t, cluster.Client(t), namespace), newPod("a"))
	waitForPod(t, kube.Namespaced[corev1.Pod](cluster.Client(t), namespace), "a", runs(true))
	if out := cluster.Kubectl(t, "", "logs", "a", "--namespace", namespace); !strings.Contains(out, "simulated") {
		t.Errorf("kubectl logs: %s", out)
	}
	if out := cluster.Kubectl(t, "", "logs", "-f", "a", "--namespace", namespace); !strings.Contains(out, "simulated") {
		t.Errorf("kubectl logs -f: %s", out)
	}
	for _, command := range [][]string{{"exec", "a", "--", "true"}, {"attach", "a"}} {
		_, stderr, err := cluster.TryKubectl(t, "", append([]string{"--namespace", namespace}, command...)...)
		if err == nil || !strings.Contains(stderr, "simulated") {
			t.Errorf("kubectl %s: %v, %s", command[0], err, stderr)
		}
	}
}

func TestTwoHundredPods(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	const count = 200
	began := time.Now()
	for i := range count {
		create(t, pods, newPod(fmt.Sprintf("p%03d", i)))
	}
	created := time.Since(began)
	var all []*corev1.Pod
	yaretest.Eventually(t, func() (err error) {
		if all, err = pods.List(t.Context()); err != nil {
			return err
		}
		ready := 0
		for _, p := range all {
			if runs(true)(p) == nil {
				ready++
			}
		}
		if ready != count {
			time.Sleep(200 * time.Millisecond) // a list of 200 Pods is no small thing to ask for
			return fmt.Errorf("%d of %d Pods are ready", ready, count)
		}
		return nil
	})
	t.Logf("%d Pods were created in %s and ready after %s", count, created.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	ips := map[string]string{}
	for _, p := range all {
		if other := ips[p.Status.PodIP]; other != "" {
			t.Errorf("%s and %s have the address %s", p.Name, other, p.Status.PodIP)
		}
		ips[p.Status.PodIP] = p.Name
	}
}
