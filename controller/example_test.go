package controller_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A controller is a function for each object, and what makes it run.
func Example() {
	reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		replicas := int32(g.Spec.Size)
		labels := map[string]string{"garden": g.Name}
		live, err := kube.Apply(ctx, c, kube.OwnedBy(g, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "sprinkler", Image: "sprinkler:1"}}},
				},
			},
		}))
		if err != nil {
			return controller.Done(), err
		}
		g.Status.Size = int(live.Status.AvailableReplicas)
		return controller.RequeueAfter(time.Hour), c.ApplyStatus(ctx, g)
	}
	cleanup := func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil // the Deployment goes by itself
	}
	gardens := controller.New(reconcile,
		controller.Owns[appsv1.Deployment](),
	).Finalizer("garden.example.com/cleanup", cleanup)

	// operator.Main(gardens) is a whole program.
	needs, err := gardens.Needs()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, each := range needs.Access {
		fmt.Println(strings.TrimSuffix(each.Resource.String()+"/"+each.Subresource, "/"), each.Verbs)
	}
	// Output:
	// gardens.test.example.com [get list watch patch]
	// gardens.test.example.com/status [patch]
	// deployments.apps [get list watch create patch]
	// gardens.test.example.com/finalizers [update]
}

// A finalizer that the server would refuse is an error before any request.
func ExampleController_Finalizer_mistake() {
	reconcile := func(context.Context, *corev1.Pod, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}
	cleanup := func(context.Context, *corev1.Pod, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil
	}
	_, err := controller.New(reconcile).Finalizer("cleanup", cleanup).Needs()
	fmt.Println(err)
	// Output:
	// the controller of v1.Pod: the finalizer "cleanup" is not valid: write it as domain/name, such as pod.example.com/cleanup
}

// The finalizer was renamed. Objects that have it under its former name are cleaned up too.
func ExampleController_FormerFinalizers() {
	reconcile := func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}
	cleanup := func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil
	}
	gardens := controller.New(reconcile).
		Finalizer("garden.example.com/cleanup", cleanup).
		FormerFinalizers("finalizer.garden.example.com")
	needs, err := gardens.Needs()
	fmt.Println(needs.Finalizers, err)
	// Output:
	// [finalizer.garden.example.com garden.example.com/cleanup] <nil>
}

// The settings of the program are a ConfigMap in the namespace of the program.
func ExampleNamespace() {
	reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		settings, err := kube.Get[corev1.ConfigMap](ctx, c, controller.Namespace(ctx), "settings")
		if err != nil {
			return controller.Done(), err
		}
		controller.Log(ctx).Info("reconciling", "season", settings.Data["season"])
		return controller.Done(), nil
	}
	gardens := controller.New(reconcile, controller.Reads[corev1.ConfigMap](wire.VerbGet).InOwnNamespace())
	needs, err := gardens.Needs()
	settings := needs.Access[len(needs.Access)-1]
	fmt.Println(settings.Resource, settings.Verbs, settings.OwnNamespace, err)
	// Output:
	// configmaps [get] true <nil>
}
