package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane/fakeplane"
)

// A test program that is called with helperVariable set is one of several processes of a test.
// Called by the name of the control plane binary, it is a fake of it.
const helperVariable = "YARE_PLANE_TEST_HELPER"

func TestMain(m *testing.M) {
	fakeplane.Main()
	switch os.Getenv(helperVariable) {
	case "":
		os.Exit(m.Run())
	case "find":
		// find CACHE: as the module in the working directory would have it.
		path, err := Finder{Cache: os.Args[1]}.Find(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(path)
	case "start":
		// start BINARY: prints the ids of the processes, and never ends by itself.
		p, err := Start(context.Background(), Options{Binary: os.Args[1]})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.child.process.Pid(), p.Pids()["etcd"], p.Kubeconfig())
		select {}
	}
	os.Exit(0)
}

// eventually polls until f answers true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hasEnded reports whether a process has ended. It may not have been reaped yet.
func hasEnded(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, os.ErrPermission) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func fakeBinary(t *testing.T) string {
	t.Helper()
	name, err := fakeplane.Link(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// writeTree writes files given as name and content.
func writeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// nestedPath is the path of the module of the control plane, and binaryName is the name of its
// binary.
const (
	nestedPath = ModulePath + "/controlplane"
	binaryName = "controlplane"
)

// clone writes a small module of yare's own path with a control plane beside it.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{
		"go.mod":               "module " + ModulePath + "\n\ngo 1.26\n",
		"yare.go":              "package yare\n",
		"controlplane/go.mod":  "module " + nestedPath + "\n\ngo 1.26\n",
		"controlplane/main.go": "package main\n\nfunc main() { println(\"the small one\") }\n",
	})
	return dir
}

// environ returns the environment of this process without what tests set differently, and with
// more.
func environ(more ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case ControlPlane().Variable(), ImageBuilder().Variable(), KubernetesVariable, "GOFLAGS", "GOWORK", "PWD", helperVariable:
		default:
			env = append(env, variable)
		}
	}
	return append(env, more...)
}

// A safeBuffer may be written to and read from several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(data)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
