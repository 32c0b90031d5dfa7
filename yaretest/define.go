package yaretest

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/plane/schemachange"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Define applies the CustomResourceDefinition of T, and waits until the server serves T and, after a change of the
// definition, uses its schema. A server that takes longer than ten seconds for that leads to a log line. Tests that
// run at the same time may define the same type.
//
//	yaretest.Define[WebApp](t, cluster)
func Define[T any, P kube.DefinedObjectOf[T]](t testing.TB, cluster *Cluster) {
	t.Helper()
	defined, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, defined)
}

// Define applies the CustomResourceDefinitions of types, and waits until the server serves them.
// Several types of one kind are its versions. [Define] is the short form for one type.
func (c *Cluster) Define(t testing.TB, types ...kube.Type) {
	t.Helper()
	crds, err := crd.From(types...)
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(t).WithFieldManager("yaretest")
	definitions := kube.Dynamic(client, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		},
		Plural: "customresourcedefinitions", ClusterScoped: true,
	}, "")
	var names []string
	for _, each := range crds {
		names = append(names, each.Metadata.Name)
	}
	before, err := schemachange.Take(t.Context(), c.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range crds {
		content, err := kube.Marshal(each)
		if err != nil {
			t.Fatal(err)
		}
		// Tests that run side by side may make the same definition at the same moment.
		Eventually(t, func() error {
			definition := new(unstructured.Unstructured)
			if err := definition.UnmarshalJSON(content); err != nil {
				return err
			}
			_, err := definitions.Apply(t.Context(), definition)
			return err
		})
		WaitFor(t, definitions, each.Metadata.Name, func(definition *unstructured.Unstructured) error {
			return checkCondition(definition, "Established")
		})
	}
	for _, each := range types {
		namespace := "default"
		if each.Resource.ClusterScoped {
			namespace = ""
		}
		Eventually(t, func() error {
			_, err := kube.Dynamic(client, each.Resource, namespace).Get(t.Context(), "yaretest")
			switch {
			case err == nil, kube.IsNotFound(err) && !kube.IsNoResource(err):
				return nil
			case kube.IsNoResource(err):
				return errors.New("the server does not serve " + each.Resource.String() + " yet")
			default:
				return fmt.Errorf("see whether %s is served: %w", each.Resource, err)
			}
		})
	}
	if err := before.Wait(t.Context()); err != nil {
		t.Log(err)
	}
}
