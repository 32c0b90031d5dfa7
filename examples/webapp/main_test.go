package main

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/yare-go/yare/internal/exampletest"
	"github.com/yare-go/yare/kube"
)

func webapp(t *testing.T) exampletest.Operator {
	t.Helper()
	resource, err := kube.ResourceOf[WebApp]()
	if err != nil {
		t.Fatal(err)
	}
	return exampletest.Operator{
		Resource: resource,
		Sample:   "hello", SampleState: exampletest.State{Replicas: 3, Image: "nginx:1.27"},
		Object: func(name string, s exampletest.State) string {
			return fmt.Sprintf("apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: %s}\nspec: {image: %q, replicas: %d}\n", name, s.Image, s.Replicas)
		},
		Children: func(name string, s exampletest.State) string {
			return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{image: %[3]q}]}
`, name, s.Replicas, s.Image)
		},
		Ready:     ready,
		Finalizer: "webapp.example.com/cleanup",
		Rules: []rbacv1.PolicyRule{
			exampletest.Rule("example.com", "webapps", "get", "list", "watch", "patch"),
			exampletest.Rule("example.com", "webapps/status", "patch"),
			exampletest.Rule("apps", "deployments", "get", "list", "watch", "create", "patch"),
		},
		Tampers: append(exampletest.Tampers("", "web"), exampletest.LabelTampers()...),
		Bad: []exampletest.Bad{
			{Name: "image-is-a-number", Spec: "{image: 5, replicas: 1}", Field: "spec.image", Good: `{image: "nginx:1.28", replicas: 1}`},
			{Name: "no-image", Spec: "{replicas: 1}", Field: "spec.image", Good: `{image: "nginx:1.28", replicas: 1}`, Told: exampletest.OncePerChange},
			{Name: "negative", Spec: `{image: "nginx:1.28", replicas: -1}`, Field: "spec.replicas", Good: `{image: "nginx:1.28", replicas: 1}`, Told: exampletest.OncePerChange},
		},
	}
}

func TestWebApp(t *testing.T) { webapp(t).Test(t) }

// ready is an error while a WebApp does not say that it is, of its present generation.
func ready(object *unstructured.Unstructured, s exampletest.State) error {
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
