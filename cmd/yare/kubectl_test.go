package main

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	one := plane.Running{Title: "yare up", Kubeconfig: "/one"}
	two := plane.Running{Title: "yare dev .", Kubeconfig: "/two"}
	for _, test := range []struct {
		name       string
		args       string
		kubeconfig string
		running    []plane.Running
		want       string
		several    bool
	}{
		{name: "none runs"},
		{name: "one runs", args: "get pods", running: []plane.Running{one}, want: "/one"},
		{name: "two run", args: "get pods", running: []plane.Running{one, two}, several: true},
		{name: "the variable says which", running: []plane.Running{one, two}, kubeconfig: "/two", want: "/two"},
		{name: "the variable says another", running: []plane.Running{one}, kubeconfig: "/mine"},
		{name: "a flag", args: "get pods --kubeconfig /mine", running: []plane.Running{one, two}},
		{name: "a flag with =", args: "--kubeconfig=/mine get pods", running: []plane.Running{one}},
		{name: "a context", args: "--context prod get pods", running: []plane.Running{one}},
		{name: "a server", args: "get pods -s https://x", running: []plane.Running{one}},
		{name: "a server without a space", args: "get pods -shttps://x", running: []plane.Running{one}},
		{name: "another's flag", args: "exec web -- curl --server x", running: []plane.Running{one}, want: "/one"},
		{name: "a flag that begins alike", args: "apply --server-side -f x", running: []plane.Running{one}, want: "/one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(strings.Fields(test.args), test.kubeconfig, test.running)
			if test.several {
				if err == nil || !strings.Contains(err.Error(), "export KUBECONFIG=/one   # yare up") || !strings.Contains(err.Error(), "KUBECONFIG=/two") {
					t.Fatalf("choose() = %v; want a list", err)
				}
				return
			}
			if err != nil || got.Kubeconfig != test.want {
				t.Fatalf("choose() = %q, %v; want %q", got.Kubeconfig, err, test.want)
			}
		})
	}
}

func TestKubectlPassesEverythingOn(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	status, stdout, all := s.run("kubectl", "environment", "-v", "--help", "--", "--x=1", "a b")
	if status != 0 || stdout != `["environment" "-v" "--help" "--" "--x=1" "a b"] KUBECONFIG=`+"\n" || all != stdout {
		t.Errorf("status %d:\n%s", status, all)
	}
	if status, _, all := s.run("kubectl", "exit", "7"); status != 7 {
		t.Errorf("status %d, want 7:\n%s", status, all)
	}
}

func TestKubectlFindsThePlane(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	first := s.start("up", "--kubeconfig", "first")
	first.says(1, "Ctrl-C")
	if status, stdout, all := s.run("kubectl", "environment"); status != 0 || !strings.HasSuffix(stdout, "KUBECONFIG="+s.dir+"/first\n") || stdout != all {
		t.Errorf("one runs: status %d:\n%s", status, all)
	}
	second := s.start("up", "--kubeconfig", "second")
	second.says(1, "Ctrl-C")
	status, stdout, all := s.run("kubectl", "environment")
	if status != 1 || stdout != "" || !strings.Contains(all, "/first") || !strings.Contains(all, "/second") {
		t.Errorf("two run: status %d:\n%s", status, all)
	}
	s.env = append(s.env, "KUBECONFIG=/mine")
	if status, stdout, all := s.run("kubectl", "environment"); status != 0 || !strings.HasSuffix(stdout, "KUBECONFIG=/mine\n") {
		t.Errorf("the variable is set: status %d:\n%s", status, all)
	}
}

func TestWithoutOurs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ parent, ours, want string }{
		{"/usr/local/go/bin/go run ./cmd/yare dev .", "dev .", "go run ./cmd/yare"},
		{"go tool yare up", "up", "go tool yare"},
		{"go run -race ./cmd/yare", "", "go run -race ./cmd/yare"},
		{"go test ./...", "-test.v", ""},
	} {
		if got := withoutOurs(strings.Fields(test.parent), strings.Fields(test.ours)); got != test.want {
			t.Errorf("withoutOurs(%q, %q) = %q, want %q", test.parent, test.ours, got, test.want)
		}
	}
}
