package dev

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane/manifest"
)

func TestNotReady(t *testing.T) {
	t.Parallel()
	definitions, err := manifest.Parse([]byte(`
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: WebApp}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {properties: {status: {properties: {ready: {type: boolean}}}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\nspec: {replicas: 3}\nstatus: "
	for _, test := range []struct{ name, object, want string }{
		{"no status", "apiVersion: example.com/v1\nkind: Book\n", ""},
		{"no status yet", "apiVersion: example.com/v1\nkind: WebApp\n", "no status yet"},
		{"ready is not set", "apiVersion: example.com/v1\nkind: WebApp\nstatus: {replicas: 1}\n", "status.ready is not set"},
		{"ready is false", "kind: WebApp\nstatus: {ready: false}\n", "status.ready is false"},
		{"ready", "kind: WebApp\nstatus: {ready: true}\n", ""},
		{"an old status", "kind: WebApp\nmetadata: {generation: 3}\nstatus: {ready: true, observedGeneration: 2}\n", "newest generation has not been looked at"},
		{"being deleted", "kind: WebApp\nmetadata: {deletionTimestamp: 2026-01-01T00:00:00Z}\nstatus: {ready: true}\n", "being deleted"},
		{"a condition", "kind: Thing\nstatus: {conditions: [{type: Ready, status: 'True'}]}\n", ""},
		{"a false condition", "kind: Thing\nstatus: {conditions: [{type: Available, status: 'False', reason: NoDisk}]}\n", "the condition Available is False (NoDisk)"},
		{"another condition", "kind: Thing\nstatus: {conditions: [{type: Synced, status: 'False'}]}\n", ""},
		{"a new deployment", deployment + "{}\n", "0 of 3 pods are updated"},
		{"a rollout", deployment + "{observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 4}\n", "3 of 3 pods are updated, 4 available"},
		{"some replicas", deployment + "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 1}\n", "3 of 3 pods are updated, 1 available"},
		{"rolled out", deployment + "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}\n", ""},
		{"a pending pod", "apiVersion: v1\nkind: Pod\nstatus: {phase: Pending}\n", "the pod is pending"},
		{"a finished pod", "apiVersion: v1\nkind: Pod\nstatus: {phase: Succeeded}\n", ""},
		{"a running job", "apiVersion: batch/v1\nkind: Job\nstatus: {active: 1}\n", "the job is not complete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			objects, err := manifest.Parse([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			got := unreadyReason(objects[0], definitions)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("unreadyReason() = %q, want %q", got, test.want)
			}
		})
	}
}
