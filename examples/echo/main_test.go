package main

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/examples/internal/operatortest"
	"github.com/yare-go/yare/kube"
)

func echo(t *testing.T) operatortest.Operator {
	t.Helper()
	resource, err := kube.ResourceOf[Echo]()
	if err != nil {
		t.Fatal(err)
	}
	return operatortest.Operator{
		Resource: resource,
		Sample:   "test-echo", SampleState: operatortest.State{Replicas: 2},
		Object: func(name string, s operatortest.State) string {
			return fmt.Sprintf("apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: %s}\nspec: {replicas: %d}\n", name, s.Replicas)
		},
		Children: func(name string, s operatortest.State) string {
			return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {app.kubernetes.io/name: echo, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: echo-operator}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app.kubernetes.io/name: echo, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: echo-operator}}
  template:
    metadata: {labels: {app.kubernetes.io/name: echo, app.kubernetes.io/instance: %[1]s, app.kubernetes.io/managed-by: echo-operator}}
    spec:
      containers:
      - name: %[1]s
        image: inanimate/echo-server:latest
        imagePullPolicy: IfNotPresent
        ports: [{containerPort: 8080}]
`, name, s.Replicas)
		},
		Requeues: true,
		Bad: []operatortest.BadObject{
			{Name: "replicas-are-a-word", Spec: "{replicas: many}", Field: "spec.replicas", Good: "{replicas: 1}"},
			{Name: "negative", Spec: "{replicas: -1}", Field: "spec.replicas", Good: "{replicas: 1}", Reported: operatortest.OncePerChange},
			{Name: "nothing", Spec: "{}", Field: "spec.replicas", Good: "{replicas: 1}", Reported: operatortest.Never},
		},
	}
}

func TestEcho(t *testing.T) { echo(t).Test(t) }

func TestPermissions(t *testing.T) {
	operatortest.SkipUnlessAllPermissions(t)
	echo(t).TestPermissions(t)
}
