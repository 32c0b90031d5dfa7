package main

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/yaretest"
)

// manifests.yaml is what the program prints: go test -update writes it anew.
func TestManifests(t *testing.T) {
	t.Parallel()
	image := "registry.example.com/webapp@sha256:" + strings.Repeat("0", 64)
	printed, err := exec.Command(yaretest.Build(t, "."), "manifests", "--image", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("manifests.yaml", printed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile("manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(kept), "\n"), strings.Split(string(printed), "\n")); diff != "" {
		t.Errorf("manifests.yaml is not what the program prints:\n%s", diff)
	}
}
