package kube_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

type shipSpec struct {
	Name  string            `json:"name"`
	Masts *int32            `json:"masts,omitempty"`
	Cargo map[string]string `json:"cargo,omitempty"`
	Rig   rig               `json:"rig"`
}

type rig struct {
	Sails []string `json:"sails,omitempty"`
}

type shipStatus struct {
	Afloat   bool  `json:"afloat,omitempty"`
	Replicas int32 `json:"replicas,omitempty"`
}

func (shipSpec) Definition() kube.Definition {
	return kube.Definition{Group: "kube-test.yare.dev", Version: "v1", Kind: "Ship"}
}

type ship = kube.CustomResource[shipSpec, shipStatus]

// The rig has no omitempty, so that the schema that is made from the type requires it.
const shipCRD = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "ships.kube-test.yare.dev"},
  "spec": {
    "group": "kube-test.yare.dev", "scope": "Namespaced",
    "names": {"kind": "Ship", "plural": "ships", "singular": "ship", "listKind": "ShipList"},
    "versions": [{
      "name": "v1", "served": true, "storage": true,
      "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.masts", "statusReplicasPath": ".status.replicas"}},
      "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["name", "rig"], "properties": {
          "name": {"type": "string", "maxLength": 20},
          "masts": {"type": "integer", "format": "int32"},
          "cargo": {"type": "object", "additionalProperties": {"type": "string"}},
          "rig": {"type": "object", "properties": {"sails": {"type": "array", "items": {"type": "string"}}}}
        }},
        "status": {"type": "object", "properties": {"afloat": {"type": "boolean"}, "replicas": {"type": "integer"}}}
      }}}
    }]
  }
}`

func defineShip(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	cluster.Kubectl(t, shipCRD, "apply", "--server-side", "-f", "-")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "crd/ships.kube-test.yare.dev", "--timeout=60s")
}

// must returns a function that fails the test if err is an error, and otherwise returns v.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// owned returns the fields that manager owns in obj, by paths such as .data.k.
func owned(t *testing.T, obj kube.Object, manager, subresource string) []string {
	t.Helper()
	var paths []string
	var walk func(prefix string, fields map[string]any)
	walk = func(prefix string, fields map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			inner, _ := fields[key].(map[string]any)
			name, isField := strings.CutPrefix(key, "f:")
			switch {
			case key == ".":
				paths = append(paths, prefix)
			case !isField:
				walk(prefix+"["+key+"]", inner)
			case len(inner) == 0:
				paths = append(paths, prefix+"."+name)
			default:
				walk(prefix+"."+name, inner)
			}
		}
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == manager && entry.Subresource == subresource && entry.Operation == metav1.ManagedFieldsOperationApply {
			var fields map[string]any
			if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
				t.Fatal(err)
			}
			walk("", fields)
		}
	}
	return paths
}
