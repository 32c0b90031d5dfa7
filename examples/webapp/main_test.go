package main

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/yare-go/yare/examples/internal/operatortest"
	"github.com/yare-go/yare/kube"
)

func webapp(t *testing.T) operatortest.Operator {
	t.Helper()
	resource, err := kube.ResourceOf[WebApp]()
	if err != nil {
		t.Fatal(err)
	}
	return operatortest.Operator{
		Resource: resource,
		Sample:   "hello", SampleState: operatortest.State{Replicas: 3, Image: "nginx:1.27"},
		Object: func(name string, s operatortest.State) string {
			return fmt.Sprintf("apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: %s}\nspec: {image: %q, replicas: %d}\n", name, s.Image, s.Replicas)
		},
		Children: func(name string, s operatortest.State) string {
			return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {app.kubernetes.io/name: webapp, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: webapp-operator}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app.kubernetes.io/name: webapp, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: webapp-operator}}
  template:
    metadata: {labels: {app.kubernetes.io/name: webapp, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: webapp-operator}}
    spec: {containers: [{image: %[3]q}]}
`, name, s.Replicas, s.Image)
		},
		Ready: ready,
		Bad: []operatortest.BadObject{
			{Name: "image-is-a-number", Spec: "{image: 5, replicas: 1}", Field: "spec.image", Good: `{image: "nginx:1.28", replicas: 1}`},
			{Name: "no-image", Spec: "{replicas: 1}", Field: "spec.image", Good: `{image: "nginx:1.28", replicas: 1}`, Reported: operatortest.OncePerChange},
			{Name: "negative", Spec: `{image: "nginx:1.28", replicas: -1}`, Field: "spec.replicas", Good: `{image: "nginx:1.28", replicas: 1}`, Reported: operatortest.OncePerChange},
		},
	}
}

func TestWebApp(t *testing.T) { webapp(t).Test(t) }

func TestPermissions(t *testing.T) { webapp(t).TestPermissions(t) }

// ready returns an error unless a WebApp reports that it is ready at its current generation.
func ready(object *unstructured.Unstructured, s operatortest.State) error {
	var app WebApp
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &app); err != nil {
		return err
	}
	c := meta.FindStatusCondition(app.Status.Conditions, "Ready")
	if c == nil || !app.Status.Ready || int(app.Status.AvailableReplicas) != s.Replicas {
		return fmt.Errorf("its status is %+v", app.Status)
	}
	if c.Status != metav1.ConditionTrue || c.Reason == "" || c.Message == "" || c.ObservedGeneration != app.Generation || c.LastTransitionTime.IsZero() {
		return fmt.Errorf("at generation %d its condition is %+v", app.Generation, c)
	}
	return nil
}
