package history_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// record begins to record a namespace.
func record(t *testing.T, cluster *yaretest.Cluster, namespace string) *history.Recording {
	t.Helper()
	r, err := history.NewRecorder(t.Context(), cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Record(namespace)
}

func apply[T any, P kube.ObjectOf[T]](t *testing.T, c *kube.Client, object *T) *T {
	t.Helper()
	live, err := kube.Apply(t.Context(), c, P(object))
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// catchUp waits until everything is recorded.
func catchUp(t *testing.T, r *history.Recording) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestEqualRunsOnARealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t).WithFieldManager("operator")
	runs := make([]*history.Recording, 2)
	namespaces := make([]string, 2)
	for i := range runs {
		namespace := cluster.Namespace(t)
		namespaces[i] = namespace
		runs[i] = record(t, cluster, namespace)
		runs[i].BeginStep(0)
		labels := map[string]string{"app": "web"}
		pods := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "URL", Value: "http://web." + namespace + ".svc"}},
			}}},
		}
		replicas := int32(2)
		apply(t, client, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pods},
		})
		apply(t, client, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
		})
		apply(t, client, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, StringData: map[string]string{"password": fmt.Sprint("chosen by run ", i)},
		})
		pods.Spec.RestartPolicy = corev1.RestartPolicyNever
		apply(t, client, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "import"}, Spec: batchv1.JobSpec{Template: pods},
		})
	}
	states := make([]history.State, len(runs))
	for i, namespace := range namespaces {
		yaretest.WaitForCondition(t, kube.Namespaced[appsv1.Deployment](client, namespace), "web", "Available")
		yaretest.WaitForCondition(t, kube.Namespaced[batchv1.Job](client, namespace), "import", "Complete")
		catchUp(t, runs[i])
		states[i] = runs[i].State()
	}

	masks, err := history.NewMasks(states, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if varying := masks.Varying(); !slices.Equal(varying, []string{"secrets/web: data.password"}) {
		t.Errorf("only the password differs between the runs, and the masks have %q", varying)
	}
	expect(t, lines(masks.Compare(states[0], states[1])))
	references := []history.History{runs[0].History(), runs[1].History()}
	expect(t, lines(history.Destroyed(references, references[1], history.Options{})))
	if h := references[0]; len(h.Gaps) > 0 || !slices.ContainsFunc(h.Versions, func(v history.Version) bool {
		return v.Resource == "pods" && v.Manager == "yare-simulated-kubelet"
	}) {
		t.Errorf("the recorder has gaps %v, or has not seen the kubelet write a Pod", h.Gaps)
	}

	// The second run goes on, and destroys.
	runs[1].BeginStep(1)
	secrets := kube.Namespaced[corev1.Secret](client, namespaces[1])
	if err := secrets.Delete(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	apply(t, client, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[1], Name: "web"}, StringData: map[string]string{"password": "another one"},
	})
	if _, err := kube.Namespaced[appsv1.Deployment](client, namespaces[1]).SetScale(t.Context(), "web", 3); err != nil {
		t.Fatal(err)
	}
	catchUp(t, runs[1])
	expect(t, lines(masks.Compare(states[0], runs[1].State())), "deployments.apps/web: spec.replicas is 3, want 2")
	expect(t, lines(history.Destroyed(references, runs[1].History(), history.Options{})),
		"secrets/web was deleted in step 2", "secrets/web was created again in step 2")
	expect(t, lines(history.Destroyed(references, runs[1].History(), history.Options{},
		faults.Fault{Kind: faults.ForeignDelete, Object: &faults.Object{Resource: "secrets", Name: "web"}})))
	first := runs[1].History()
	first.Versions = slices.DeleteFunc(slices.Clone(first.Versions), func(v history.Version) bool { return v.Step > 0 })
	expect(t, lines(masks.Compare(states[0], first.State())))
}

// Every version is recorded, and right after CatchUp everything that was written before is there.
func TestEveryVersionIsRecorded(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t).WithFieldManager("operator")
	namespace := cluster.Namespace(t)
	r := record(t, cluster, namespace)
	maps := kube.Namespaced[corev1.ConfigMap](client, namespace)
	for i := range 10 {
		for value := range 5 {
			apply(t, client, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("map-", i)}, Data: map[string]string{"value": fmt.Sprint(value)},
			})
		}
		if err := maps.Delete(t.Context(), fmt.Sprint("map-", i)); err != nil {
			t.Fatal(err)
		}
		catchUp(t, r)
		var got []string
		for _, v := range r.Versions() {
			if v.Name != fmt.Sprint("map-", i) {
				continue
			}
			data, _ := v.Object["data"].(map[string]any)
			got = append(got, fmt.Sprint(data["value"], " ", v.Manager, " ", v.IsDeleted))
		}
		want := []string{"0 operator false", "1 operator false", "2 operator false", "3 operator false", "4 operator false", "4  true"}
		if !slices.Equal(got, want) {
			t.Fatalf("the versions of map %d are %q, want %q", i, got, want)
		}
	}
}
