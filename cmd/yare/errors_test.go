package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yare-go/yare/internal/testkit/executable"
)

// A panic at the start of a program was reported as a program that is no operator, with the end of the stack.
func TestDevReportsAPanicAtTheStart(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("op/main.go", "package main\n\nfunc main() {\n\tvar m map[string]int\n\tdeep(m, 30)\n}\n\nfunc deep(m map[string]int, n int) {\n\tif n == 0 {\n\t\tm[\"a\"] = 1\n\t}\n\tdeep(m, n-1)\n}\n")
	status, _, all := s.run("dev", "op")
	for _, want := range []string{"op panics before it prints its CustomResourceDefinitions", "panic: assignment to entry in nil map", "op/main.go:10"} {
		if status != 1 || !strings.Contains(all, want) {
			t.Errorf("status %d, want 1, and %q in:\n%s", status, want, all)
		}
	}
	if strings.Contains(all, "is no operator") {
		t.Errorf("a panic is reported as a program that is no operator:\n%s", all)
	}
	s.leftNothing()
}

// Definitions that the API server refuses were reported below the words "waiting for the next save:", with all fields of a rule.
func TestDevReportsARefusedDefinition(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	refused := strings.Replace(operator("one"), "kind: CustomResourceDefinition", "kind: CustomResourceDefinition # refuse it", 1)
	s.write("op/main.go", refused)
	c := s.start("dev", "op")
	c.says(1, "yare: the API server refuses a CustomResourceDefinition: correct the tag crd or the method Rules of the Go type")
	c.says(1, `Invalid value: "self.a > 1": compilation failed`)
	c.says(1, "yare: waiting for the next save\n")
	s.write("op/main.go", operator("two"))
	c.says(1, "version two")
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	s.leftNothing()
}

// An address that is right on this machine is refused by the subcommand manifests, which once kept the policies of the program
// from being applied.
func TestDevAsksForManifestsWithoutRefusedArguments(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	const unknown = "\t\tfmt.Fprintln(os.Stderr, \"unknown command \\\"manifests\\\"\")\n\t\tos.Exit(2)\n"
	const refusing = "\t\tif os.Args[len(os.Args)-1] == \"127.0.0.1:80\" {\n\t\t\tfmt.Fprintln(os.Stderr, \"op: nothing outside of its Pod reaches it\")\n\t\t\tos.Exit(1)\n\t\t}\n\t\treturn\n"
	source := strings.Replace(operator("one"), unknown, refusing, 1)
	const noPermissions = "\t\tfmt.Fprintln(os.Stderr, \"unknown command \\\"permissions\\\"\")\n\t\tos.Exit(2)\n"
	source = strings.Replace(source, noPermissions, "\t\tfmt.Print(\"---\\napiVersion: rbac.authorization.k8s.io/v1\\nkind: ClusterRole\\nmetadata: {name: op}\\nrules: []\\n\")\n\t\treturn\n", 1)
	s.write("op/main.go", source)
	status, _, all := s.run("dev", "op", "--until-ready", "--", "--listen", "127.0.0.1:80")
	if status != 0 || strings.Contains(all, "not applied") || strings.Contains(all, "outside of its Pod") {
		t.Errorf("status %d:\n%s", status, all)
	}
	s.leftNothing()
}

// A full disk was reported as a program that does not compile.
func TestDevReportsAFullDisk(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("op/main.go", operator("one"))
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = build ]; then\n\techo 'go: writing action: write /cache/a: no space left on device' >&2\n\texit 1\nfi\nexec '%s' \"$@\"\n", real)
	executable.Write(t, filepath.Join(folder, "go"), text)
	s.env = append(s.env, "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	status, _, all := s.run("dev", "op")
	if status != 1 || !strings.Contains(all, "no space is left on the disk to build op: make room, or set GOCACHE and TMPDIR") || strings.Contains(all, "does not compile") {
		t.Errorf("status %d:\n%s", status, all)
	}
	s.leftNothing()
}

// The second run shows how long a step took in the first one.
func TestDevShowsTheLastDuration(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("op/main.go", operator("one"))
	_, _, first := s.run("dev", "op", "--until-ready")
	_, _, second := s.run("dev", "op", "--until-ready")
	if strings.Contains(first, "last time") {
		t.Errorf("the first run knows a duration:\n%s", first)
	}
	if !strings.Contains(second, "starting the control plane (last time ") {
		t.Errorf("the second run shows no duration:\n%s", second)
	}
}
