package definitions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/definitions"
	"github.com/yare-go/yare/yaretest"
)

// An apply to an object with managedFields in a version that the definition lacks fails. --check let such a definition
// pass, because no object was stored in the version.
func TestCheckFindsManagersOfDroppedVersions(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	const group, name = "managers.example.com", "robots.managers.example.com"
	t.Cleanup(func() {
		if _, stderr, err := cluster.TryKubectl(t, "", "delete", "crd", name, "--wait=false"); err != nil {
			t.Logf("left behind: %v: %s", err, stderr)
		}
	})
	namespace := cluster.Namespace(t)
	define := func(versions string) {
		t.Helper()
		cluster.Kubectl(t, fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s}\nspec: {group: %s, scope: Namespaced, names: {plural: robots, kind: Robot}, versions: [%s]}\n",
			name, group, versions), "apply", "--server-side", "-f", "-")
		cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+name)
	}
	version := func(name string, isServed, isStored bool) string {
		return fmt.Sprintf("{name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}", name, isServed, isStored)
	}
	define(version("v1", true, false) + "," + version("v2", true, true))
	yaretest.Eventually(t, func() error {
		_, stderr, err := cluster.TryKubectl(t, fmt.Sprintf("apiVersion: %s/v1\nkind: Robot\nmetadata: {name: a, namespace: %s}\nspec: {size: 1}\n", group, namespace), "apply", "--server-side", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
	define(version("v1", false, false) + "," + version("v2", true, true))
	client := cluster.Client(t)
	program := &crd.CustomResourceDefinition{}
	program.Metadata.Name = name
	program.Spec = crd.Spec{Group: group, Scope: "Namespaced", Names: crd.Names{Plural: "robots", Kind: "Robot"}}
	size := &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{"spec": {Type: "object", Properties: map[string]*crd.Schema{"size": {Type: "integer"}}}}}
	program.Spec.Versions = []crd.Version{{Name: "v2", Served: true, Storage: true, Schema: crd.VersionSchema{OpenAPIV3Schema: size}}}
	check := func(ctx context.Context) error {
		r := wire.Resource{Plural: "customresourcedefinitions", ClusterScoped: true}
		r.Group, r.Version, r.Kind = "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
		response, err := client.Do(ctx, &wire.Request{Verb: wire.VerbGet, Resource: r, Name: name})
		if err != nil {
			return err
		}
		return definitions.Check(ctx, client, response.Body, program, "robots migrate")
	}
	if err := check(t.Context()); err == nil || !strings.Contains(err.Error(), "managedFields of 1 objects have entries in it, such as "+namespace+"/a") || !strings.Contains(err.Error(), "run robots migrate first") {
		t.Errorf("managers of v1: %v", err)
	}
	if err := kube.IgnoreNotFound(kube.Metadata(client, resource(group), namespace).Delete(t.Context(), "a")); err != nil {
		t.Fatal(err)
	}
	if err := check(t.Context()); err != nil {
		t.Errorf("without managers of v1: %v", err)
	}
}

// resource returns the resource of the robots of a group.
func resource(group string) wire.Resource {
	r := wire.Resource{Plural: "robots"}
	r.Group, r.Version, r.Kind = group, "v2", "Robot"
	return r
}
