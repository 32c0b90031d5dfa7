package engine_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// A run gets the namespace of a former run, and finds nothing of that run there. The end of the
// exploration removes the namespace.
func TestNamespaceIsUsedAgain(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespaces, err := engine.NewNamespaces(t.Context(), cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	name, recording, err := namespaces.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	create(t, kube.Namespaced[appsv1.Deployment](client, name), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	})
	create(t, kube.Namespaced[corev1.ConfigMap](client, name), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.com/nobody-removes-it"}},
	})
	// A run in which a quota was full could not be made, and all later runs in its namespace were refused their objects.
	quotas := kube.Namespaced[corev1.ResourceQuota](client, name)
	create(t, quotas, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: faults.FullQuotaName}})
	pods := kube.Namespaced[corev1.Pod](client, name)
	yaretest.Eventually(t, func() error {
		all, err := pods.List(t.Context())
		if err == nil && len(all) != 2 {
			err = fmt.Errorf("%d Pods exist", len(all))
		}
		return err
	})
	namespaces.End(name, recording)

	again, recording, err := namespaces.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again != name {
		t.Errorf("the next run has the namespace %s, want %s", again, name)
	}
	for _, v := range recording.State().Objects() {
		if v.Name != "default" && v.Name != "kube-root-ca.crt" && v.Resource != "events" && v.Resource != "events.events.k8s.io" {
			t.Errorf("the next run finds %s %s", v.Resource, v.Name)
		}
	}
	if _, err := quotas.Get(t.Context(), faults.FullQuotaName); !kube.IsNotFound(err) {
		t.Errorf("the next run finds the full quota of the run before: %v", err)
	}
	namespaces.End(again, recording)
	if err := namespaces.Close(); err != nil {
		t.Fatal(err)
	}
	switch namespace, err := kube.Everywhere[corev1.Namespace](client).Get(t.Context(), name); {
	case kube.IsNotFound(err):
	case err != nil:
		t.Error(err)
	case namespace.DeletionTimestamp == nil:
		t.Errorf("the namespace %s is left", name)
	}
}

// A program that makes objects without end is refused at some time.
func TestNamespaceBoundsItsObjects(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespaces, err := engine.NewNamespaces(t.Context(), cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	name, recording, err := namespaces.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		quotas, err := kube.Namespaced[corev1.ResourceQuota](client, name).List(t.Context())
		if err == nil && (len(quotas) != 1 || len(quotas[0].Status.Hard) == 0) {
			err = fmt.Errorf("the control plane has not observed the quota: %v", quotas)
		}
		return err
	})
	services := kube.Namespaced[corev1.Service](client, name)
	for i := range 1000 {
		_, err = services.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
		})
		if err != nil {
			break
		}
	}
	if !kube.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("the server accepts any number of Services: %v", err)
	}
	for _, v := range recording.Versions() {
		if v.Resource == "resourcequotas" {
			t.Errorf("the guard is recorded: %s", v.Name)
		}
	}
	namespaces.End(name, recording)
	if err := namespaces.Close(); err != nil {
		t.Fatal(err)
	}
}
