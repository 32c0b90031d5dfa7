package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane"
)

// The flags reach the builder, whose output and status yare returns. The tests of the module
// image check what the builder does, and .ci/stranger checks both together.
func TestImage(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	builder := filepath.Join(t.TempDir(), "image")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 3\n"
	if err := os.WriteFile(builder, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, plane.ImageBuilder().Variable()+"="+builder)
	s.write("op/main.go", "package main\n")
	status, stdout, all := s.run("image", "-o", "x.tar", "--push", "example.org/a:b", "--insecure", "--platform", "linux/arm64", "op")
	want := []string{
		"--output=x.tar", "--push=example.org/a:b", "--tag=", "--ca=", "--platform=linux/arm64",
		"--insecure=true", "--ca-certificates=false", "--", "op", "",
	}
	if status != 3 || stdout != strings.Join(want, "\n") {
		t.Errorf("status %d\n%s", status, all)
	}
	for args, want := range map[string]string{
		"image":                 "yare image -o FILE DIR",
		"image op op":           "name one folder",
		"image -o x op/main.go": "is no folder",
		"image -o x nothing":    "is no folder",
		"image op":              "name where the image goes",
		"image --frob op":       "yare image --help",
	} {
		if status, stdout, all := s.run(strings.Fields(args)...); status != 1 || stdout != "" || !strings.Contains(all, want) {
			t.Errorf("%s: status %d, want %q\n%s", args, status, want, all)
		}
	}
	s.leftNothing()
}
