// Command first runs the operator that README shows: a web application is a Deployment.
package main

import (
	"context"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type WebAppSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas" crd:"minimum=0"`
}

func (WebAppSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "WebApp"}
}

type WebApp = kube.CustomResource[WebAppSpec, struct{}]

func main() { operator.Main(newController()) }

func newController() operator.Part {
	return controller.New(reconcile, controller.Owns[appsv1.Deployment]())
}

func reconcile(ctx context.Context, app *WebApp, c *kube.Client) (controller.Action, error) {
	labels := map[string]string{"app": app.Name}
	_, err := kube.Apply(ctx, c, kube.OwnedBy(app, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &app.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels, app.Spec.Image),
		},
	}))
	return controller.Done(), err
}

func podTemplate(labels map[string]string, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}
