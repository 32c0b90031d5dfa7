package main

import (
	"strings"
	"syscall"
	"testing"
)

func TestRealNodeGetsImages(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	if status, _, all := s.run("load", "webapp.tar"); status != 1 || !strings.Contains(all, "no real node of yours runs here: start one by") {
		t.Errorf("without a node: status %d:\n%s", status, all)
	}
	c := s.start("up", "--real-node", "--load", "webapp.tar")
	c.says(1, "the real node has the image "+s.dir+"/webapp.tar")
	c.says(1, "Ctrl-C")
	status, stdout, all := s.run("load", "member.tar", "/tmp/echo.tar")
	if want := `["--address" "/fake/containerd.sock" "` + s.dir + `/member.tar" "/tmp/echo.tar"]` + "\n"; status != 0 || stdout != want {
		t.Errorf("status %d, the node is called with %q, want %q:\n%s", status, stdout, want, all)
	}
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	s.leftNothing()
}

func TestRealNodeFlagsThatContradict(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for want, args := range map[string][]string{
		"add --real-node":    {"up", "--load", "webapp.tar"},
		"use one of the two": {"up", "--real-node", "--nodes", "2"},
	} {
		if status, _, all := s.run(args...); status != 1 || !strings.Contains(all, want) {
			t.Errorf("yare %s: status %d, want an error with %q:\n%s", strings.Join(args, " "), status, want, all)
		}
	}
}
