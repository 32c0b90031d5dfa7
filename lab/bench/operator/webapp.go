package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/probe"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

func newWebAppController() *controller.Controller[workload.WebApp] {
	p := probe.FromEnv()
	reconcile := func(ctx context.Context, app *workload.WebApp, c *kube.Client) (controller.Action, error) {
		defer p.Reconciled(app.Name, app.ResourceVersion)
		return reconcile(ctx, app, c)
	}
	return controller.New(reconcile, controller.FieldManager("webapp-operator"), controller.Owns[appsv1.Deployment]())
}

// reconcile applies the Deployment of app, and the status of app.
func reconcile(ctx context.Context, app *workload.WebApp, c *kube.Client) (controller.Action, error) {
	live, err := kube.Apply(ctx, c, kube.OwnedBy(app, deployment(app)))
	if err != nil {
		return controller.Done(), err
	}
	s, want, reason := live.Status, app.Spec.Replicas, "Progressing"
	ready := s.ObservedGeneration == live.Generation && s.Replicas == want && s.UpdatedReplicas == want &&
		s.AvailableReplicas == want
	if ready {
		reason = "Available"
	}
	app.Status.AvailableReplicas, app.Status.Ready = s.AvailableReplicas, ready
	kube.SetCondition(ctx, &app.Status.Conditions, app, "Ready", ready, reason,
		fmt.Sprintf("%d of %d pods are updated, %d available", s.UpdatedReplicas, want, s.AvailableReplicas))
	return controller.RequeueAfter(5 * time.Minute), c.ApplyStatus(ctx, app)
}

// deployment returns the desired Deployment of app.
func deployment(app *workload.WebApp) *appsv1.Deployment {
	labels := map[string]string{"app": app.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &app.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: app.Spec.Image}}},
			},
		},
	}
}
