package integration

import (
	"fmt"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// The stock controllers limit their retries, all objects together, to ten a second, and more
// errors than that put each later retry off: after a minute of quick edits and recreations, a
// Deployment whose sync failed once was left alone for minutes.
func TestDeploymentIsRetriedSoonAfterManyErrors(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	cluster := yaretest.New(t) // of its own: the errors concern all Deployments of a control plane
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	deployments := kube.Namespaced[appsv1.Deployment](client, namespace)
	quotas := kube.Namespaced[corev1.ResourceQuota](client, namespace)

	// While this quota is there, each sync of a Deployment fails to create its ReplicaSet.
	const replicaSets = corev1.ResourceName("count/replicasets.apps")
	none := corev1.ResourceList{replicaSets: resource.MustParse("0")}
	create(t, quotas, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: none},
	})
	yaretest.WaitFor(t, quotas, "none", func(q *corev1.ResourceQuota) error {
		if _, known := q.Status.Hard[replicaSets]; !known {
			return fmt.Errorf("the quota is not in force: %+v", q.Status)
		}
		return nil
	})
	const objects, edits, editors = 100, 30, 10 // 3,000 errors: at ten a second, retries of 300 s
	name := func(i int) string { return fmt.Sprintf("web-%d", i) }
	for i := range objects {
		create(t, deployments, newDeployment(name(i), 0))
	}
	var editing sync.WaitGroup
	for editor := range editors {
		editing.Go(func() {
			for i := range objects * edits / editors {
				change := kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"edit": fmt.Sprint(i)}}})
				if _, err := deployments.Patch(t.Context(), name((editor+i*editors)%objects), change); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	editing.Wait()
	remove(t, quotas, "none")

	for i := range objects {
		yaretest.WaitFor(t, deployments, name(i), rolledOut(0))
	}
}
