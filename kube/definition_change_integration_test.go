package kube_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

type buoySpec struct {
	Colour string `json:"colour,omitempty"`
}

func (buoySpec) Definition() kube.Definition {
	return kube.Definition{Group: "kube-test.yare.dev", Version: "v1", Kind: "Buoy"}
}

type buoy = kube.CustomResource[buoySpec, struct{}]

const buoyCRD = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "buoys.kube-test.yare.dev"},
  "spec": {
    "group": "kube-test.yare.dev", "scope": "Namespaced",
    "names": {"kind": "Buoy", "plural": "buoys", "singular": "buoy", "listKind": "BuoyList"},
    "versions": [{
      "name": "v1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {"type": "object", "description": "DESCRIPTION", "properties": {
        "spec": {"type": "object", "properties": {"colour": {"type": "string"}}}
      }}}
    }]
  }
}`

// TestCreateWhileTheDefinitionChanges creates objects while the definition of their kind changes. The API server
// answers some of the requests with 503 before it begins with them.
// Bug: a create that met such an answer was returned as an error of unknown result, and was not repeated.
func TestCreateWhileTheDefinitionChanges(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	define := func(description string) {
		cluster.Kubectl(t, strings.Replace(buoyCRD, "DESCRIPTION", description, 1), "apply", "--server-side", "-f", "-")
	}
	define("first")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "crd/buoys.kube-test.yare.dev", "--timeout=60s")
	buoys := kube.Namespaced[buoy](cluster.Client(t), cluster.Namespace(t))

	ctx, stop := context.WithCancel(t.Context())
	var creators sync.WaitGroup
	defer creators.Wait()
	defer stop()
	for creator := range 4 {
		creators.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("b-%d-%d", creator, i)
				if _, err := buoys.Create(t.Context(), &buoy{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
					t.Errorf("after %d creates: %v", i, err)
				}
			}
		})
	}
	for i := range 20 {
		define(fmt.Sprint("number ", i))
	}
}
