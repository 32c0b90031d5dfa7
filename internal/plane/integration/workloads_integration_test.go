package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// newDeployment returns a Deployment of Pods with one container.
func newDeployment(name string, replicas int32) *appsv1.Deployment {
	labels, selector := selected(name)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: podTemplate(labels)},
	}
}

// rolledOut returns a check that fails unless so many replicas are available, all of them new.
func rolledOut(replicas int32) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas {
			return fmt.Errorf("Deployment %s, generation %d, is not rolled out: %+v", d.Name, d.Generation, s)
		}
		return nil
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	namespace := cluster.Namespace(t)
	deployments := kube.Namespaced[appsv1.Deployment](cluster.Client(t), namespace)
	create(t, deployments, newDeployment("web", 2))
	yaretest.WaitFor(t, deployments, "web", rolledOut(2))
	yaretest.WaitForCondition(t, deployments, "web", string(appsv1.DeploymentAvailable))

	for _, replicas := range []int32{4, 1} {
		if _, err := deployments.SetScale(t.Context(), "web", replicas); err != nil {
			t.Fatal(err)
		}
		yaretest.WaitFor(t, deployments, "web", rolledOut(replicas))
	}

	const image = "example.com/image:2"
	container := []any{map[string]any{"name": "main", "image": image}}
	patch(t, deployments, "web", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": container}}}})
	cluster.Kubectl(t, "", "rollout", "status", "deployment/web", "--namespace", namespace, "--timeout=60s")
	yaretest.Eventually(t, func() error {
		pods, err := kube.Namespaced[corev1.Pod](cluster.Client(t), namespace).List(t.Context(), kube.Label("app", "web"))
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d Pods, %v", len(pods), err)
		}
		if got := pods[0].Status.ContainerStatuses[0].Image; got != image {
			return fmt.Errorf("the image is %s", got)
		}
		return nil
	})
}

// A rollout whose Pods never become ready does not take the old ones away.
func TestDeploymentWaitsForReadyPods(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	deployments := kube.Namespaced[appsv1.Deployment](cluster.Client(t), cluster.Namespace(t))
	create(t, deployments, newDeployment("web", 1))
	yaretest.WaitFor(t, deployments, "web", rolledOut(1))
	annotateTemplate := func(value any) {
		patch(t, deployments, "web", map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{outcome: value}}}}})
	}
	annotateTemplate("crash-loop")
	yaretest.WaitFor(t, deployments, "web", func(d *appsv1.Deployment) error {
		if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != 2 || s.UpdatedReplicas != 1 || s.AvailableReplicas != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	annotateTemplate(nil)
	yaretest.WaitFor(t, deployments, "web", rolledOut(1))
}

func TestServiceHasThePodsAsEndpoints(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	create(t, kube.Namespaced[appsv1.Deployment](client, namespace), newDeployment("web", 2))
	labels, _ := selected("web")
	service := create(t, kube.Namespaced[corev1.Service](client, namespace), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	if service.Spec.ClusterIP == "" {
		t.Error("the Service has no address")
	}
	yaretest.Eventually(t, func() error {
		pods, err := kube.Namespaced[corev1.Pod](client, namespace).List(t.Context())
		if err != nil {
			return err
		}
		slices, err := kube.Namespaced[discoveryv1.EndpointSlice](client, namespace).List(t.Context(), kube.Label(discoveryv1.LabelServiceName, "web"))
		if err != nil {
			return err
		}
		ready := map[string]bool{}
		for _, slice := range slices {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready[e.Addresses[0]] = true
				}
			}
		}
		for _, p := range pods {
			if !ready[p.Status.PodIP] {
				return fmt.Errorf("the Pod %s with address %q is not among %v", p.Name, p.Status.PodIP, ready)
			}
		}
		if len(pods) != 2 || len(ready) != 2 {
			return fmt.Errorf("%d Pods and %d endpoints", len(pods), len(ready))
		}
		return nil
	})
}

func TestDaemonSet(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	sets := kube.Namespaced[appsv1.DaemonSet](cluster.Client(t), cluster.Namespace(t))
	labels, selector := selected("daemon")
	create(t, sets, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: podTemplate(labels)},
	})
	yaretest.WaitFor(t, sets, "daemon", func(d *appsv1.DaemonSet) error {
		if s := d.Status; s.DesiredNumberScheduled != 1 || s.NumberReady != 1 || s.NumberAvailable != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

func TestStatefulSet(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	sets, pods := kube.Namespaced[appsv1.StatefulSet](client, namespace), kube.Namespaced[corev1.Pod](client, namespace)
	labels, selector := selected("db")
	create(t, sets, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), ServiceName: "db", Selector: selector, Template: podTemplate(labels)},
	})
	available := func(replicas int32) {
		t.Helper()
		yaretest.WaitFor(t, sets, "db", func(s *appsv1.StatefulSet) error {
			if s.Status.ObservedGeneration != s.Generation || s.Status.Replicas != replicas || s.Status.AvailableReplicas != replicas {
				return fmt.Errorf("the status is %+v", s.Status)
			}
			return nil
		})
	}
	available(3)
	// One after the other: none is made before the one before it is ready.
	for i := range 2 {
		before, after := get(t, pods, fmt.Sprintf("db-%d", i)), get(t, pods, fmt.Sprintf("db-%d", i+1))
		if after.CreationTimestamp.Time.Before(condition(before, corev1.PodReady).LastTransitionTime.Time) {
			t.Errorf("%s was made before %s was ready", after.Name, before.Name)
		}
	}
	// A Pod that goes comes back under its name.
	old := get(t, pods, "db-1")
	remove(t, pods, "db-1")
	yaretest.Eventually(t, func() error {
		p, err := pods.Get(t.Context(), "db-1")
		if err != nil {
			return err
		}
		if p.UID == old.UID {
			return errors.New("the old Pod is still there")
		}
		return runs(true)(p)
	})
	if _, err := sets.SetScale(t.Context(), "db", 1); err != nil {
		t.Fatal(err)
	}
	available(1)
}

// newJob returns a Job whose Pods have annotations.
func newJob(name string, policy corev1.RestartPolicy, backoffLimit int32, annotations ...string) *batchv1.Job {
	template := podTemplate(nil, annotations...)
	template.Spec.RestartPolicy = policy
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{BackoffLimit: &backoffLimit, Template: template},
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	jobs := kube.Namespaced[batchv1.Job](client, namespace)
	several := newJob("several", corev1.RestartPolicyNever, 6)
	several.Spec.Completions, several.Spec.Parallelism = new(int32(4)), new(int32(2))
	limit := newJob("limit", corev1.RestartPolicyNever, 1, outcome, "fail")
	for _, job := range []*batchv1.Job{
		limit, several,
		newJob("one", corev1.RestartPolicyOnFailure, 6),
		newJob("fail", corev1.RestartPolicyNever, 0, outcome, "fail"),
		newJob("restarts", corev1.RestartPolicyOnFailure, 1, outcome, "fail"),
	} {
		create(t, jobs, job)
	}
	for name, succeeded := range map[string]int32{"one": 1, "several": 4} {
		if job := yaretest.WaitForCondition(t, jobs, name, string(batchv1.JobComplete)); job.Status.Succeeded != succeeded || job.Status.Failed != 0 || job.Status.CompletionTime == nil {
			t.Errorf("the Job %s is complete: %+v", name, job.Status)
		}
	}
	// A limit of n is n retries: as Pods, or as restarts of the one Pod's containers.
	for name, failed := range map[string]int32{"fail": 1, "restarts": 1, "limit": 2} {
		job := yaretest.WaitForCondition(t, jobs, name, string(batchv1.JobFailed))
		i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailed })
		if reason := job.Status.Conditions[i].Reason; reason != batchv1.JobReasonBackoffLimitExceeded || job.Status.Failed != failed || job.Status.Succeeded != 0 {
			t.Errorf("the Job %s has failed (%s): %+v", name, reason, job.Status)
		}
	}
}

func TestCronJobAndItsJobs(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	create(t, kube.Namespaced[batchv1.CronJob](client, namespace), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec: batchv1.CronJobSpec{
			Schedule:    "0 0 31 2 *", // never
			JobTemplate: batchv1.JobTemplateSpec{Spec: newJob("", corev1.RestartPolicyNever, 0).Spec},
		},
	})
	if out := cluster.Kubectl(t, "", "create", "job", "now", "--from=cronjob/nightly", "--namespace", namespace); !strings.Contains(out, "created") {
		t.Error(out)
	}
	yaretest.WaitForCondition(t, kube.Namespaced[batchv1.Job](client, namespace), "now", string(batchv1.JobComplete))
}
