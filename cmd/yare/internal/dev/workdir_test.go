package dev

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWorkdirsOfKilledProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	used, err := newWorkdir(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer used.remove()
	killed, err := newWorkdir(parent)
	if err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does when a process dies
	foreign := filepath.Join(parent, workdirPrefix+"of-somebody-else")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := newWorkdir(parent) // at once: a killed process is often started again at once
	if err != nil {
		t.Fatal(err)
	}
	defer next.remove()
	for path, want := range map[string]bool{used.path: true, next.path: true, foreign: true, killed.path: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", path, err == nil, want)
		}
	}
}
