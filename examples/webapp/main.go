// Command webapp runs the WebApp operator: a web application is a Deployment.
package main

import (
	"context"
	"embed"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/readiness"
	"github.com/yare-go/yare/operator"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// WebAppSpec is the desired state of the application.
type WebAppSpec struct {
	// The container image to run.
	Image string `json:"image" crd:"column"`
	// The desired number of replicas.
	Replicas int32 `json:"replicas" crd:"minimum=0,column"`
}

// WebAppStatus is the observed state of the application.
type WebAppStatus struct {
	// How many pods serve.
	AvailableReplicas int32 `json:"availableReplicas" crd:"column=Available"`
	// Whether the desired number of pods serves, all of them with the desired image.
	Ready bool `json:"ready" crd:"column"`
	// The same as a standard condition, with a reason.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Definition returns the definition of WebApps.
func (WebAppSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "WebApp", ShortNames: []string{"wa"}, Source: source,
		// The name is the value of a label too.
		Rules: []kube.Rule{{Rule: "self.metadata.name.size() <= 63"}},
	}
}

// WebApp is a web application.
type WebApp = kube.CustomResource[WebAppSpec, WebAppStatus]

func main() {
	operator.Main(controller.New(reconcile, controller.Owns[appsv1.Deployment]()))
}

func reconcile(ctx context.Context, app *WebApp, c *kube.Client) (controller.Action, error) {
	live, err := kube.Apply(ctx, c, kube.OwnedBy(app, deployment(app)))
	if err != nil {
		return controller.Done(), err
	}
	rollout := readiness.Of(live)
	ready := rollout.State == readiness.Ready
	if ready != app.Status.Ready {
		controller.Log(ctx).Info("the readiness changes", "ready", ready, "available", live.Status.AvailableReplicas)
	}
	app.Status.AvailableReplicas, app.Status.Ready = live.Status.AvailableReplicas, ready
	kube.SetCondition(ctx, &app.Status.Conditions, app, "Ready", ready, rollout.Reason, rollout.Message)
	return controller.Done(), c.ApplyStatus(ctx, app)
}

// deployment returns the desired Deployment of app.
func deployment(app *WebApp) *appsv1.Deployment {
	labels := map[string]string{
		"app.kubernetes.io/name":       "webapp",
		"app.kubernetes.io/instance":   app.Name,
		"app.kubernetes.io/managed-by": "webapp-operator",
	}
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
