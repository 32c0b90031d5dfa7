package plane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/filelock"
	"github.com/yare-go/yare/internal/testkit/executable"
)

func keyOf(t *testing.T, src source) string {
	t.Helper()
	b, err := newBuilder(ControlPlane(), environ(), src, nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := b.key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKeyFollowsTheSource(t *testing.T) {
	t.Parallel()
	src := source{dir: filepath.Join(clone(t), "controlplane")}
	first := keyOf(t, src)
	for _, change := range []struct {
		name, file, content string
		changes             bool
	}{
		{"a test", "main_test.go", "package main\n", false},
		{"an editor's file", ".main.go.swp", "x", false},
		{"the same again", "main.go", "package main\n\nfunc main() { println(\"the small one\") }\n", false},
		{"a file's content", "main.go", "package main\n\nfunc main() {}\n", true},
		{"a new file", "sub/other.go", "package sub\n", true},
		{"something embedded", "sub/data.yaml", "a: b\n", true},
		{"a requirement", "go.mod", "module " + nestedPath + "\n\ngo 1.26\n\nrequire k8s.io/kubernetes v1.36.3\n", true},
	} {
		writeTree(t, src.dir, map[string]string{change.file: change.content})
		key := keyOf(t, src)
		if (key != first) != change.changes {
			t.Errorf("%s: the key changed: %t, want %t", change.name, key != first, change.changes)
		}
		first = key
	}
	if err := os.Rename(filepath.Join(src.dir, "sub/data.yaml"), filepath.Join(src.dir, "sub/data2.yaml")); err != nil {
		t.Fatal(err)
	}
	if keyOf(t, src) == first {
		t.Error("a file's name does not change the key")
	}
}

func TestKeyFollowsTheGoVersion(t *testing.T) {
	t.Parallel()
	tool := t.TempDir()
	fake := func(version string) goTool {
		executable.Write(t, filepath.Join(tool, version), "#!/bin/sh\necho "+version+"\n")
		return goTool{path: filepath.Join(tool, version), env: environ()}
	}
	keys := map[string]bool{}
	for _, version := range []string{"go1.26.0", "go1.26.1"} {
		for _, src := range []source{{version: "v1.0.0"}, {version: "v1.0.1"}, {dir: filepath.Join(clone(t), "controlplane")}} {
			key, err := builder{tool: fake(version), src: src}.key(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			keys[key] = true
		}
	}
	if len(keys) != 6 {
		t.Errorf("6 different builds have %d keys", len(keys))
	}
}

func TestInterruptedBuildIsNotTrusted(t *testing.T) {
	t.Parallel()
	c := cache{module: ControlPlane(), dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.getOrBuild(ctx, "key", func(ctx context.Context, dir string) error {
		writeTree(t, dir, map[string]string{binaryName: "half a bin"})
		cancel()
		return context.Cause(ctx)
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("get() = %v", err)
	}
	// What a killed process leaves: its folder, and a lock that nobody holds.
	writeTree(t, c.dir, map[string]string{"key/build-123/" + binaryName: "half", "key/lock": "1"})
	path, err := c.getOrBuild(t.Context(), "key", func(_ context.Context, dir string) error {
		writeTree(t, dir, map[string]string{binaryName: "whole"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "whole" {
		t.Errorf("the binary holds %q, %v", data, err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "key", "build-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWaiterSaysForWhom(t *testing.T) {
	t.Parallel()
	var output safeBuffer
	c := cache{module: ControlPlane(), dir: t.TempDir(), console: console.New(&output, "yare")}
	writeTree(t, c.dir, map[string]string{"key/lock": "4711"})
	lock, err := os.Open(filepath.Join(c.dir, "key", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := filelock.Try(lock, filelock.Exclusive); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.getOrBuild(ctx, "key", func(context.Context, string) error { return errors.New("built in spite of the lock") })
		done <- err
	}()
	eventually(t, "the waiter says for whom it waits", func() bool {
		return strings.Contains(output.String(), "waiting for process 4711")
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("get() = %v", err)
	}
}

func TestPruneKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	c := cache{module: ControlPlane(), dir: t.TempDir()}
	long := time.Now().Add(-48 * time.Hour)
	for i, key := range []string{"recent", "older", "third", "fourth", "running", "oldest"} {
		writeTree(t, c.dir, map[string]string{key + "/" + binaryName: "x"})
		used := long.Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(c.dir, key, binaryName), used, used); err != nil {
			t.Fatal(err)
		}
	}
	running, err := os.Open(filepath.Join(c.dir, "running", binaryName))
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if err := filelock.Try(running, filelock.Shared); err != nil {
		t.Fatal(err)
	}
	_, err = c.getOrBuild(t.Context(), "new", func(_ context.Context, dir string) error {
		writeTree(t, dir, map[string]string{binaryName: "x"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"new": true, "recent": true, "older": true, "third": true, "fourth": true, "running": true, "oldest": false} {
		_, err := os.Stat(filepath.Join(c.dir, key, binaryName))
		if (err == nil) != want {
			t.Errorf("%s is kept: %t, want %t", key, err == nil, want)
		}
	}
}
