package main

import (
	"os"
	"strings"
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// cluster.yaml has the kinds and the namespaces of the workload. UPDATE_CLUSTER=1 writes it.
func TestClusterManifest(t *testing.T) {
	t.Parallel()
	shop, err := kube.TypeOf[workload.Shop]()
	if err != nil {
		t.Fatal(err)
	}
	webApp, err := kube.TypeOf[workload.WebApp]()
	if err != nil {
		t.Fatal(err)
	}
	machine, err := kube.TypeOf[workload.Machine]()
	if err != nil {
		t.Fatal(err)
	}
	crds, err := crd.From(shop, webApp, machine)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := crd.WriteYAML(&want, crds...); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(workload.Namespaces(), webAppNamespace) {
		want.WriteString("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n")
	}
	if os.Getenv("UPDATE_CLUSTER") != "" {
		if err := os.WriteFile("cluster.yaml", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("cluster.yaml"); err != nil || string(got) != want.String() {
		t.Errorf("cluster.yaml is not what the workload needs (%v): run the test with UPDATE_CLUSTER=1", err)
	}
}
