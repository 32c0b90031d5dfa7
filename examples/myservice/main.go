// Command myservice runs the MyService operator: a Deployment and a Service for its pods.
package main

import (
	"context"
	"embed"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// MyServiceSpec is the desired state of the service.
type MyServiceSpec struct {
	// Replicas is how many pods serve.
	Replicas int32 `json:"replicas" crd:"minimum=0,column"`
	// Image is the container image to run.
	Image string `json:"image" crd:"column"`
}

// Definition returns the definition of MyServices.
func (MyServiceSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "MyService", Source: source}
}

// MyService is a Deployment of an image that serves HTTP, with a Service.
type MyService = kube.CustomResource[MyServiceSpec, kube.None]

func main() {
	operator.Main(controller.New(reconcile,
		controller.Owns[appsv1.Deployment](),
		controller.Owns[corev1.Service](),
	))
}

func reconcile(ctx context.Context, m *MyService, c *kube.Client) (controller.Action, error) {
	for _, child := range []kube.Object{deployment(m), service(m)} {
		if _, err := kube.Apply(ctx, c, kube.OwnedBy(m, child)); err != nil {
			return controller.Done(), err
		}
	}
	return controller.Done(), nil
}

// deployment returns the Deployment that runs the pods of m.
func deployment(m *MyService) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-deployment", Labels: labels(m)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &m.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels(m)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(m)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: m.Name + "-container", Image: m.Spec.Image}}},
			},
		},
	}
}

// service returns the Service that selects the pods of m.
func service(m *MyService) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-service", Labels: labels(m)},
		Spec: corev1.ServiceSpec{
			Selector: labels(m),
			Ports:    []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}},
		},
	}
}

// labels returns the labels of the children of m, and of its pods.
func labels(m *MyService) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "myservice",
		"app.kubernetes.io/instance":   m.Name,
		"app.kubernetes.io/managed-by": "myservice-operator",
	}
}
