// Command echo runs the Echo operator: an echo is a Deployment of echo servers.
package main

import (
	"context"
	"embed"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// EchoSpec is the desired state of the echo.
type EchoSpec struct {
	// Replicas is how many servers answer.
	Replicas int32 `json:"replicas" crd:"minimum=0,column"`
}

// Definition returns the definition of Echoes.
func (EchoSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "Echo",
		Plural: "echoes", ShortNames: []string{"echo"}, Source: source,
	}
}

// Echo is a number of servers that answer with what they receive.
type Echo = kube.CustomResource[EchoSpec, kube.None]

func main() {
	operator.Main(controller.New(reconcile,
		controller.Owns[appsv1.Deployment](),
		controller.Writes[appsv1.Deployment](wire.VerbDelete), // in the cleanup
	).Finalizer("echoes.example.com/finalizer", cleanup))
}

func reconcile(ctx context.Context, echo *Echo, c *kube.Client) (controller.Action, error) {
	_, err := kube.Apply(ctx, c, kube.OwnedBy(echo, deployment(echo)))
	return controller.RequeueAfter(10 * time.Second), err
}

// cleanup deletes the Deployment before the Echo. The Deployment may be deleted already.
func cleanup(ctx context.Context, echo *Echo, c *kube.Client) (controller.Cleanup, error) {
	return controller.CleanupDone(), kube.IgnoreNotFound(c.Delete(ctx, deployment(echo)))
}

// deployment returns the desired Deployment of echo.
func deployment(echo *Echo) *appsv1.Deployment {
	labels := map[string]string{
		"app.kubernetes.io/name":       "echo",
		"app.kubernetes.io/instance":   echo.Name,
		"app.kubernetes.io/managed-by": "echo-operator",
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: echo.Namespace, Name: echo.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &echo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:            echo.Name,
					Image:           "inanimate/echo-server:latest",
					ImagePullPolicy: corev1.PullIfNotPresent,
					Ports:           []corev1.ContainerPort{{ContainerPort: 8080}},
				}}},
			},
		},
	}
}
