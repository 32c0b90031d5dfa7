package main

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDeploymentFollowsAndComesBack(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t) // a real control plane, started once for all tests
	yaretest.Define[WebApp](t, cluster)
	namespace := cluster.Namespace(t)
	apps := kube.Namespaced[WebApp](cluster.Client(t), namespace)
	deployments := kube.Namespaced[appsv1.Deployment](cluster.Client(t), namespace)
	yaretest.RunParts(t, cluster, newController())
	app := &WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"}, Spec: WebAppSpec{Image: "nginx:1.27", Replicas: 3}}
	if _, err := apps.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	first := waitForReplicas(t, deployments, 3, "")

	// Somebody edits the number.
	if _, err := apps.Modify(t.Context(), "hello", func(app *WebApp) error { app.Spec.Replicas = 5; return nil }); err != nil {
		t.Fatal(err)
	}
	waitForReplicas(t, deployments, 5, "")

	// Somebody deletes the Deployment.
	if err := deployments.Delete(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	waitForReplicas(t, deployments, 5, first.UID)
}

// waitForReplicas waits until a Deployment with another UID than former has so many Pods available.
func waitForReplicas(t *testing.T, deployments kube.API[appsv1.Deployment], replicas int32, former types.UID) *appsv1.Deployment {
	t.Helper()
	return yaretest.WaitFor(t, deployments, "hello", func(d *appsv1.Deployment) error {
		if d.UID == former || d.Status.AvailableReplicas != replicas || d.Status.Replicas != replicas {
			return fmt.Errorf("the Deployment %s has %d Pods, %d of them available", d.UID, d.Status.Replicas, d.Status.AvailableReplicas)
		}
		return nil
	})
}
