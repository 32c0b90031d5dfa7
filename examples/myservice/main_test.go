package main

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/examples/internal/operatortest"
	"github.com/yare-go/yare/kube"
)

func myService(t *testing.T) operatortest.Operator {
	t.Helper()
	resource, err := kube.ResourceOf[MyService]()
	if err != nil {
		t.Fatal(err)
	}
	return operatortest.Operator{
		Resource: resource,
		Sample:   "my-app", SampleState: operatortest.State{Replicas: 3, Image: "nginx:latest"},
		Object: func(name string, s operatortest.State) string {
			return fmt.Sprintf("apiVersion: example.com/v1\nkind: MyService\nmetadata: {name: %s}\nspec: {replicas: %d, image: %q}\n", name, s.Replicas, s.Image)
		},
		Children: func(name string, s operatortest.State) string {
			return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s-deployment, labels: {app.kubernetes.io/name: myservice, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: myservice-operator}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app.kubernetes.io/name: myservice, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: myservice-operator}}
  template:
    metadata: {labels: {app.kubernetes.io/name: myservice, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: myservice-operator}}
    spec:
      containers: [{name: %[1]s-container, image: %[3]q}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s-service, labels: {app.kubernetes.io/name: myservice, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: myservice-operator}}
spec:
  selector: {app.kubernetes.io/name: myservice, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: myservice-operator}
  ports: [{protocol: TCP, port: 80, targetPort: 80}]
`, name, s.Replicas, s.Image)
		},
		Bad: []operatortest.BadObject{
			{Name: "replicas-are-a-word", Spec: "{replicas: many, image: nginx}", Field: "spec.replicas", Good: `{replicas: 1, image: "nginx:1.28"}`},
			{Name: "no-image", Spec: "{replicas: 1}", Field: "spec.image", Good: `{replicas: 1, image: "nginx:1.28"}`, Reported: operatortest.OncePerChange},
			{Name: "negative", Spec: `{replicas: -1, image: nginx}`, Field: "spec.replicas", Good: `{replicas: 1, image: "nginx:1.28"}`, Reported: operatortest.OncePerChange},
		},
	}
}

func TestMyService(t *testing.T) { myService(t).Test(t) }

func TestPermissions(t *testing.T) {
	operatortest.SkipUnlessAllPermissions(t)
	myService(t).TestPermissions(t)
}
