package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// crashes returns a check that fails unless a Pod's container was restarted so many times, and waits
// again.
func crashes(restarts, code int32) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != corev1.PodRunning || len(p.Status.ContainerStatuses) == 0 {
			return errors.New("it does not run")
		}
		c := p.Status.ContainerStatuses[0]
		if c.Ready || condition(p, corev1.PodReady).Status == corev1.ConditionTrue {
			return errors.New("it is ready")
		}
		if c.RestartCount < restarts || c.State.Waiting == nil || c.State.Waiting.Reason != "CrashLoopBackOff" {
			return fmt.Errorf("it does not crash again and again")
		}
		if last := c.LastTerminationState.Terminated; last == nil || last.ExitCode != code || last.Reason != "Error" {
			return fmt.Errorf("it did not exit with %d", code)
		}
		return nil
	}
}

// heldPending returns an error unless a Pod stays Pending as if its image were missing.
func heldPending(p *corev1.Pod) error {
	if p.Status.Phase != corev1.PodPending || p.Spec.NodeName == "" || len(p.Status.ContainerStatuses) == 0 {
		return errors.New("it is not pending on its node")
	}
	if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ImagePullBackOff" {
		return errors.New("its container does not wait for an image")
	}
	return nil
}

// Each annotation has its effect. All Pods are made at once, so that their times go by
// together.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	const never, onFailure, always = corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways
	cases := []struct {
		name        string
		policy      corev1.RestartPolicy
		annotations []string
		want        func(*corev1.Pod) error
	}{
		{"default", always, nil, runs(true)},
		{"default-never", never, nil, ended(0)},
		{"default-on-failure", onFailure, nil, ended(0)},
		{"fail", never, []string{outcome, "fail"}, ended(1)},
		{"fail-on-failure", onFailure, []string{outcome, "fail"}, crashes(1, 1)},
		{"fail-always", always, []string{outcome, "fail"}, crashes(1, 1)},
		{"fail-code", never, []string{outcome, "fail", exitCode, "3"}, ended(3)},
		{"crash-loop", always, []string{outcome, "crash-loop"}, crashes(2, 1)},
		{"crash-loop-code", always, []string{outcome, "crash-loop", exitCode, "137"}, crashes(1, 137)},
		{"crash-loop-never", never, []string{outcome, "crash-loop"}, ended(1)},
		{"pending", always, []string{outcome, "pending"}, heldPending},
		{"ready-soon", always, []string{readyAfter, "3s"}, runs(true)},
		{"ready-late", always, []string{readyAfter, "1h"}, runs(false)},
		{"complete", never, []string{completeAfter, "2s"}, ended(0)},
		{"complete-late", never, []string{completeAfter, "1h"}, runs(true)},
		{"complete-code", never, []string{completeAfter, "100ms", exitCode, "255"}, ended(255)},
		{"code", never, []string{exitCode, "42"}, ended(42)},
		{"code-zero", never, []string{exitCode, "0"}, ended(0)},
	}
	for _, tc := range cases {
		p := newPod(tc.name, tc.annotations...)
		p.Spec.RestartPolicy = tc.policy
		create(t, pods, p)
	}
	for _, tc := range cases {
		waitForPod(t, pods, tc.name, tc.want)
	}
	// The others had their time by now; what should take an hour has not happened.
	for name, still := range map[string]func(*corev1.Pod) error{
		"default": runs(true), "pending": heldPending, "ready-late": runs(false), "complete-late": runs(true),
	} {
		if err := still(get(t, pods, name)); err != nil {
			t.Errorf("later, %s: %v", name, err)
		}
	}
	// Times in a status have no fractions of a second, so one may be missing.
	p := get(t, pods, "ready-soon")
	if d := condition(p, corev1.PodReady).LastTransitionTime.Sub(p.Status.ContainerStatuses[0].State.Running.StartedAt.Time); d < 2*time.Second {
		t.Errorf("ready-after 3s: it was ready after %s", d)
	}
	end := get(t, pods, "complete").Status.ContainerStatuses[0].State.Terminated
	if d := end.FinishedAt.Sub(end.StartedAt.Time); d < time.Second {
		t.Errorf("complete-after 2s: it completed after %s", d)
	}
}

// A Pod's annotations can be changed while it runs.
func TestAnnotationsCanBeChanged(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	create(t, pods, newPod("held", outcome, "pending"))
	create(t, pods, newPod("late", readyAfter, "1h"))
	create(t, pods, newPod("crashes", outcome, "crash-loop"))
	create(t, pods, newPod("runs"))
	long := newPod("long", completeAfter, "1h")
	long.Spec.RestartPolicy = corev1.RestartPolicyNever
	create(t, pods, long)

	waitForPod(t, pods, "held", heldPending)
	annotate(t, pods, "held", outcome, "")
	waitForPod(t, pods, "late", runs(false))
	annotate(t, pods, "late", readyAfter, "100ms")
	waitForPod(t, pods, "crashes", crashes(1, 1))
	annotate(t, pods, "crashes", outcome, "")
	waitForPod(t, pods, "runs", runs(true))
	annotate(t, pods, "runs", outcome, "crash-loop")
	waitForPod(t, pods, "long", runs(true))
	annotate(t, pods, "long", completeAfter, "0s", exitCode, "7")

	waitForPod(t, pods, "held", runs(true))
	waitForPod(t, pods, "late", runs(true))
	if p := waitForPod(t, pods, "crashes", runs(true)); p.Status.ContainerStatuses[0].RestartCount == 0 {
		t.Error("its restarts were forgotten")
	}
	waitForPod(t, pods, "runs", crashes(1, 1))
	waitForPod(t, pods, "long", ended(7))
	annotate(t, pods, "late", readyAfter, "1h")
	waitForPod(t, pods, "late", runs(false))
}

// An invalid value is reported, and ignored.
func TestBadAnnotationsAreTold(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	pods := podsOf(t, client, namespace)
	bad := map[string]string{
		outcome: "explode", readyAfter: "soon", completeAfter: "-1s", terminateAfter: "3", exitCode: "256", simulate + "outcom": "fail",
	}
	p := newPod("a")
	p.Annotations = bad
	create(t, pods, p)
	p = waitForPod(t, pods, "a", runs(true))
	warnings := func() (map[string]string, error) {
		events, err := kube.Namespaced[corev1.Event](client, namespace).List(t.Context(),
			kube.Field("involvedObject.uid", string(p.UID)), kube.Field("reason", "InvalidSimulation"))
		reported := map[string]string{}
		for _, e := range events {
			if e.Type != corev1.EventTypeWarning {
				t.Errorf("an Event of type %s: %s", e.Type, e.Message)
			}
			for name, value := range bad {
				if strings.Contains(e.Message, name+":") && strings.Contains(e.Message, fmt.Sprintf("%q", value)) {
					reported[name] = e.Message
				}
			}
		}
		return reported, err
	}
	all := func() error {
		reported, err := warnings()
		if err == nil && len(reported) != len(bad) {
			err = fmt.Errorf("of %v it reported only %v", bad, reported)
		}
		return err
	}
	yaretest.Eventually(t, all)
	bad[outcome] = "burst"
	annotate(t, pods, "a", outcome, "burst")
	yaretest.Eventually(t, all)
	if out := cluster.Kubectl(t, "", "describe", "pod", "a", "--namespace", namespace); !strings.Contains(out, `"burst" is ignored: want fail, crash-loop or pending`) {
		t.Errorf("kubectl describe does not say what is wrong:\n%s", out)
	}
	// Good values beside bad ones count.
	annotate(t, pods, "a", outcome, "crash-loop")
	waitForPod(t, pods, "a", crashes(1, 1))
}
