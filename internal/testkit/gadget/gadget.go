// Package gadget has a kind for tests on a real API server. The kind has a list of each type, a
// default, a status and a scale.
package gadget

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// Resource returns a resource. The group of the core is empty.
func Resource(group, version, kind, plural string) wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Plural: plural,
	}
}

// Gadgets returns the resource of the kind.
func Gadgets() wire.Resource { return Resource("test.example.com", "v1", "Gadget", "gadgets") }

// Define defines the kind in a cluster. To define it twice has no effect.
func Define(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	cluster.Kubectl(t, definition, "apply", "--server-side", "-f", "-")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/gadgets.test.example.com")
}

// Object returns an object of r with the members of body, which is JSON. Its integers are int64.
func Object(t *testing.T, r wire.Resource, namespace, name, body string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := `{"apiVersion":"` + r.GroupVersion().String() + `","kind":"` + r.Kind + `",` + body[1:]
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.test.example.com}
spec:
  group: test.example.com
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.count, statusReplicasPath: .status.seen}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              number: {type: integer, format: int64}
              count: {type: integer}
              size: {type: string, default: small}
              empty: {type: object, properties: {inner: {type: string}}}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              plain: {type: array, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  required: [port]
                  properties:
                    port: {type: integer}
                    protocol: {type: string, default: TCP}
                    name: {type: string}
          status:
            type: object
            properties:
              seen: {type: integer}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type]
                  properties: {type: {type: string}, status: {type: string}, reason: {type: string}}
`
