package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yare-go/yare/internal/plane"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	one := plane.Running{Title: "yare up", Kubeconfig: "/one", Projects: []string{"/src/own"}}
	two := plane.Running{Title: "yare dev .", Kubeconfig: "/two", Projects: []string{"/src", "/src/own"}}
	other := plane.Running{Title: "yare up", Kubeconfig: "/other", Projects: []string{"/src/other", "/src"}}
	for _, test := range []struct {
		name       string
		args       string
		kubeconfig string
		running    []plane.Running
		want       string
		list       []string // of the error
	}{
		{name: "none runs"},
		{name: "one runs", args: "get pods", running: []plane.Running{one}, want: "/one"},
		{name: "two run", args: "get pods", running: []plane.Running{one, other, two}, list: []string{"several", "export KUBECONFIG=/one   # yare up", "KUBECONFIG=/two"}},
		{name: "one of several is of this project", args: "get pods", running: []plane.Running{one, other}, want: "/one"},
		// Once the remaining plane was used. The remaining plane was not the user's own.
		{name: "the own one has ended", args: "get pods", running: []plane.Running{other}, list: []string{"no control plane runs in the project /src/own", "export KUBECONFIG=/other   # yare up", "in /src/other"}},
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
			got, err := choosePlane(strings.Fields(test.args), test.kubeconfig, "/src/own", test.running)
			if test.list != nil {
				for _, text := range test.list {
					if err == nil || !strings.Contains(err.Error(), text) {
						t.Errorf("choosePlane() = %v; want %q in it", err, text)
					}
				}
				return
			}
			if err != nil || got.Kubeconfig != test.want {
				t.Fatalf("choosePlane() = %q, %v; want %q", got.Kubeconfig, err, test.want)
			}
		})
	}
}

func TestKubectlPassesEverythingOn(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	status, stdout, all := s.run("kubectl", "environment", "-v", "--help", "--", "--x=1", "a b")
	if status != 0 || stdout != `["environment" "-v" "--help" "--" "--x=1" "a b"] KUBECONFIG=/dev/null`+"\n" || !strings.Contains(all, "no control plane of yours runs") {
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
	status, stdout, all := s.run("kubectl", "environment")
	if status != 0 || !strings.HasSuffix(stdout, "KUBECONFIG="+s.dir+"/first\n") {
		t.Errorf("one runs: status %d:\n%s", status, all)
	}
	if named := "this is the cluster of `yare up --kubeconfig first` (KUBECONFIG=" + s.dir + "/first)\n"; strings.Count(all, "\n") != 2 || !strings.Contains(all, named) {
		t.Errorf("one runs, and is not named in one line: %s", all)
	}
	second := s.start("up", "--kubeconfig", "second")
	second.says(1, "Ctrl-C")
	status, stdout, all = s.run("kubectl", "environment")
	if status != 1 || stdout != "" || !strings.Contains(all, "/first") || !strings.Contains(all, "/second") {
		t.Errorf("two run: status %d:\n%s", status, all)
	}
	s.env = append(s.env, "KUBECONFIG=/mine")
	if status, stdout, all := s.run("kubectl", "environment"); status != 0 || !strings.HasSuffix(stdout, "KUBECONFIG=/mine\n") {
		t.Errorf("the variable is set: status %d:\n%s", status, all)
	}
}

// The plane of another project is never used in place of the own one, also when the own one has
// ended.
func TestKubectlStaysInTheProject(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("own/go.mod", "module example.com/own\n")
	s.write("own/op/doc.go", "package op\n")
	s.write("other/go.mod", "module example.com/other\n")
	in := func(dir string) *sandbox {
		there := *s
		there.dir = filepath.Join(s.dir, dir)
		return &there
	}
	other := in("other").start("up")
	other.says(1, "Ctrl-C")
	own := in("own").start("up", "--kubeconfig", "access")
	own.says(1, "Ctrl-C")
	status, stdout, all := in("own/op").run("kubectl", "environment")
	if status != 0 || !strings.HasSuffix(stdout, "KUBECONFIG="+s.dir+"/own/access\n") {
		t.Errorf("the own one runs: status %d:\n%s", status, all)
	}
	own.signal(syscall.SIGINT)
	own.wait()
	status, stdout, all = in("own/op").run("kubectl", "environment")
	if status != 1 || stdout != "" || !strings.Contains(all, "no control plane runs in the project "+s.dir+"/own") || !strings.Contains(all, "in "+s.dir+"/other") {
		t.Errorf("the own one has ended: status %d:\n%s", status, all)
	}
}

func TestWithoutOwnArgs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ parent, ours, want string }{
		{"/usr/local/go/bin/go run ./cmd/yare dev .", "dev .", "go run ./cmd/yare"},
		{"go tool yare up", "up", "go tool yare"},
		{"go run -race ./cmd/yare", "", "go run -race ./cmd/yare"},
		{"go test ./...", "-test.v", ""},
	} {
		if got := withoutOwnArgs(strings.Fields(test.parent), strings.Fields(test.ours)); got != test.want {
			t.Errorf("withoutOwnArgs(%q, %q) = %q, want %q", test.parent, test.ours, got, test.want)
		}
	}
}
