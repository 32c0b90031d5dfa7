package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/examples/internal/operatortest"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// What users of a WebApp see.
func TestWhatUsersSee(t *testing.T) {
	cluster := yaretest.Shared(t)
	kind, err := kube.TypeOf[WebApp]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, kind)
	namespace := cluster.Namespace(t)
	operator := cluster.Run(t, yaretest.Build(t, "."), "-v", "--watch-namespace", namespace)
	apply := func(image string) {
		t.Helper()
		cluster.Kubectl(t, webapp(t).Object("hello", operatortest.State{Image: image, Replicas: 2}), "apply", "--namespace", namespace, "-f", "-")
	}
	apply("nginx:1.27")
	cluster.Kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", namespace, "wa/hello")

	t.Run("columns", func(t *testing.T) {
		yaretest.Eventually(t, func() error {
			out := cluster.Kubectl(t, "", "get", "wa", "--namespace", namespace)
			want := `^NAME +IMAGE +REPLICAS +AVAILABLE +READY +AGE\nhello +nginx:1\.27 +2 +2 +true +\d+s\n$`
			if !regexp.MustCompile(want).MatchString(out) {
				return fmt.Errorf("kubectl get wa:\n%s", out)
			}
			return nil
		})
	})
	t.Run("explain", func(t *testing.T) {
		for field, comment := range map[string]string{
			"spec.image":               "The container image to run.",
			"spec.replicas":            "The desired number of replicas.",
			"status.availableReplicas": "How many pods serve.",
		} {
			// The server publishes a new schema a little later.
			yaretest.Eventually(t, func() error {
				out, stderr, err := cluster.TryKubectl(t, "", "explain", "webapp."+field)
				if err != nil || !strings.Contains(out, comment) {
					return fmt.Errorf("kubectl explain webapp.%s: %v\n%s%s", field, err, out, stderr)
				}
				return nil
			})
		}
	})
	t.Run("condition", func(t *testing.T) {
		apps := kube.Namespaced[WebApp](cluster.Client(t), namespace)
		before := condition(yaretest.WaitForCondition(t, apps, "hello", "Ready"))
		// Long enough for a time in seconds to show a difference.
		yaretest.Eventually(t, func() error {
			if time.Since(before.LastTransitionTime.Time) < 2*time.Second {
				return fmt.Errorf("the condition is too young")
			}
			return nil
		})
		// A label does not change the condition.
		cluster.Kubectl(t, "", "label", "--namespace", namespace, "wa", "hello", "tier=front")
		operator.WaitForLog(t, `"cause":"WebApp `+namespace+`/hello modified"`)
		after := condition(yaretest.WaitForCondition(t, apps, "hello", "Ready"))
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("nothing happened, and yet its condition changed (-before +after):\n%s", diff)
		}
		// After a disturbance and a change it becomes ready again, at the new generation.
		cluster.Kubectl(t, "", "scale", "--namespace", namespace, "--replicas=0", "deployment/hello")
		apply("nginx:1.28")
		yaretest.WaitFor(t, apps, "hello", func(app *WebApp) error {
			if c := condition(app); c.ObservedGeneration != app.Generation || app.Generation == 1 || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("at generation %d the condition is %+v", app.Generation, c)
			}
			return nil
		})
	})
	t.Run("rollout that fails", func(t *testing.T) {
		// It was reported as ready while the pods of the old image served. There is no place
		// for another pod, so that a rollout cannot begin.
		quotas := kube.Namespaced[corev1.ResourceQuota](cluster.Client(t), namespace)
		if _, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "full"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		}); err != nil {
			t.Fatal(err)
		}
		yaretest.WaitFor(t, quotas, "full", func(q *corev1.ResourceQuota) error {
			if used := q.Status.Used[corev1.ResourcePods]; used.Value() != 2 {
				return fmt.Errorf("the quota is used by %s pods", used.String())
			}
			return nil
		})
		apply("nginx:1.29")
		deployments := kube.Namespaced[appsv1.Deployment](cluster.Client(t), namespace)
		stuck := yaretest.WaitFor(t, deployments, "hello", func(d *appsv1.Deployment) error {
			for _, c := range d.Status.Conditions {
				if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && d.Status.ObservedGeneration == d.Generation {
					return nil
				}
			}
			return fmt.Errorf("the rollout is not stuck: %+v", d.Status)
		})
		if stuck.Status.AvailableReplicas != 2 || stuck.Status.UpdatedReplicas != 0 {
			t.Errorf("the old pods do not serve: %+v", stuck.Status)
		}
		apps := kube.Namespaced[WebApp](cluster.Client(t), namespace)
		yaretest.WaitFor(t, apps, "hello", func(app *WebApp) error {
			c := condition(app)
			if c.ObservedGeneration != app.Generation || app.Status.Ready || c.Message != "0 of 2 pods are updated, 2 available" {
				return fmt.Errorf("while the rollout fails its status is %+v", app.Status)
			}
			return nil
		})
		cluster.Kubectl(t, "", "delete", "--namespace", namespace, "resourcequota", "full")
		yaretest.WaitForCondition(t, apps, "hello", "Ready")
	})
	t.Run("log", func(t *testing.T) {
		operator.WaitForLog(t, `"msg":"reconciled","controller":"webapp","namespace":"`+namespace+`","name":"hello"`)
		// With -v, why and what.
		for _, part := range []string{`"cause":"WebApp `, `"cause":"Deployment `, `"wrote":["patch `, `"took":`, "(skipped)"} {
			operator.WaitForLog(t, part)
		}
	})
	cluster.Kubectl(t, "", "delete", "--namespace", namespace, "wa", "hello")
	if status := operator.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
}

// condition returns the condition Ready of app.
func condition(app *WebApp) *metav1.Condition {
	return meta.FindStatusCondition(app.Status.Conditions, "Ready")
}
