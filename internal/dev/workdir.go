package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/yare-go/yare/internal/plane/filelock"
)

const lockName = ".yare-dev-lock"

// A workdir is the folder the operator is built in. It is locked while it is in use, so
// that one left by a killed process can be told and removed.
type workdir struct {
	path string
	lock *os.File
}

func newWorkdir() (*workdir, error) {
	const pattern = "yare-dev-"
	sweep(filepath.Join(os.TempDir(), pattern+"*"))
	path, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("making a folder to build the operator in: %w", err)
	}
	w := &workdir{path: path}
	if w.lock, err = os.Create(filepath.Join(path, lockName)); err == nil {
		err = filelock.Try(w.lock, filelock.Exclusive)
	}
	if err != nil {
		w.remove()
		return nil, fmt.Errorf("locking the folder the operator is built in: %w", err)
	}
	return w, nil
}

func sweep(pattern string) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return
	}
	for _, name := range names {
		info, err := os.Stat(name)
		// A young one may not be locked yet.
		lock := filepath.Join(name, lockName)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		// Without our lock it is somebody else's folder, whatever its name.
		if _, err := os.Stat(lock); err == nil && !filelock.Held(lock, filelock.Shared) {
			_ = os.RemoveAll(name)
		}
	}
}

func (w *workdir) remove() {
	_ = os.RemoveAll(w.path)
	if w.lock != nil {
		_ = w.lock.Close()
	}
}
