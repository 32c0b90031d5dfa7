// Package onserver tests package cache on a real API server.
package onserver

import (
	"encoding/json"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

func resource(group, version, kind, plural string) kube.Resource {
	return kube.Resource{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Plural: plural}
}

var (
	configMaps = resource("", "v1", "ConfigMap", "configmaps")
	services   = resource("", "v1", "Service", "services")
	gadgets    = resource("onserver.example.com", "v1", "Gadget", "gadgets")
)

// gadgetCRD has a list of each kind.
const gadgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.onserver.example.com}
spec:
  group: onserver.example.com
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

func defineGadgets(t *testing.T, cluster *yaretest.Cluster) {
	cluster.Kubectl(t, gadgetCRD, "apply", "--server-side", "-f", "-")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/gadgets.onserver.example.com")
}

const (
	configMap = `{"metadata":{"labels":{"app":"a"}},"data":{"k":"v","l":"w"}}`
	service   = `{"metadata":{"labels":{"app":"a"}},"spec":{"selector":{"app":"a"},"ports":[{"name":"http","port":80,"targetPort":8080},{"name":"dns","port":53,"protocol":"UDP"}]}}`
)

// object returns an object with the members of body.
func object(t *testing.T, r kube.Resource, namespace, name, body string) *unstructured.Unstructured {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.GroupVersion().String(), "kind": r.Kind}}
	maps.Copy(u.Object, members)
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}
