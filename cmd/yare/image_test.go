package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/testkit/executable"
)

// An image takes seconds: yare shows what it does, and from the second time on how long that took the last time. Ctrl-C ends the
// builder. What the builder writes about a failure stands there once.
func TestImageShowsProgress(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	mayEnd := filepath.Join(t.TempDir(), "may-end")
	builder := filepath.Join(t.TempDir(), "image")
	text := "#!/bin/sh\ntrap 'exit 1' INT\nuntil test -e " + mayEnd + "; do sleep 0.05; done\n" +
		"case $* in *fails*) echo 'yare: the registry is down' >&2; exit 4;; esac\n" +
		"echo 'yare: no licence of example.com/a' >&2\necho name@digest 1\n"
	executable.Write(t, builder, text)
	s.env = append(s.env, plane.ImageBuilder().Variable()+"="+builder)
	s.write("op/main.go", "package main\n")
	interrupted := s.start("image", "-o", "x.tar", "op")
	interrupted.says(1, "making the image of op (")
	interrupted.signal(syscall.SIGINT)
	if status := interrupted.wait(); status != 1 || !strings.Contains(interrupted.out.String(), "yare: interrupted: the image is not complete") {
		t.Errorf("interrupted: status %d\n%s", status, interrupted.out.String())
	}
	for _, want := range []string{"making the image of op (", ", last time "} {
		c := s.start("image", "-o", "x.tar", "op")
		c.says(1, want)
		if err := os.WriteFile(mayEnd, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if status := c.wait(); status != 0 || c.stdout.String() != "name@digest 1\n" || !strings.Contains(c.out.String(), "yare: no licence of example.com/a\n") {
			t.Errorf("status %d\n%s", status, c.out.String())
		}
		if err := os.Remove(mayEnd); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(mayEnd, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, stdout, all := s.run("image", "-o", "fails.tar", "op"); status != 4 || stdout != "" || all != "yare: the registry is down\n" {
		t.Errorf("failed: status %d\n%s", status, all)
	}
	s.leftNothing()
}

// The flags reach the builder, whose output and status yare returns. The tests of the module
// image check what the builder does, and .ci/stranger checks both together.
func TestImage(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	builder := filepath.Join(t.TempDir(), "image")
	text := "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 3\n"
	executable.Write(t, builder, text)
	s.env = append(s.env, plane.ImageBuilder().Variable()+"="+builder)
	s.write("op/main.go", "package main\n")
	status, stdout, all := s.run("image", "-o", "x.tar", "--push", "example.org/a:b", "--insecure", "--platform", "linux/arm64", "op")
	want := []string{
		"--output=x.tar", "--push=example.org/a:b", "--tag=", "--ca=", "--platform=linux/arm64",
		"--insecure=true", "--ca-certificates=false", "--provenance=", "--", "op", "",
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
