package dev

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/yare-go/yare/internal/plane/filelock"
)

const (
	workdirPrefix = "yare-dev-"
	lockName      = ".yare-dev-lock"
)

// workdir is the folder in which the operator is built. A workdir in use is locked, so that
// sweep removes the folders of killed processes, and no others.
type workdir struct {
	path string
	lock *os.File
}

// newWorkdir makes a folder in parent, and removes the folders there that killed processes left.
func newWorkdir(parent string) (*workdir, error) {
	sweep(parent)
	path, err := os.MkdirTemp(parent, workdirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder to build the operator in: %w", err)
	}
	w := &workdir{path: path}
	// The lock gets its name when it is locked: sweep never finds an unlocked lock in the folder
	// of a running process.
	if w.lock, err = os.CreateTemp(path, lockName+"-"); err == nil {
		err = filelock.Try(w.lock, filelock.Exclusive)
	}
	if err == nil {
		err = os.Rename(w.lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		w.remove()
		return nil, fmt.Errorf("lock the folder the operator is built in: %w", err)
	}
	return w, nil
}

// sweep removes the folders that newWorkdir made in parent for processes that have ended. It removes no folder without
// a lock, whatever the name of the folder.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, workdirPrefix+"*", lockName))
	if err != nil {
		return
	}
	for _, lock := range locks {
		if !filelock.IsHeld(lock, filelock.Shared) {
			_ = os.RemoveAll(filepath.Dir(lock)) // it may belong to another user
		}
	}
}

func (w *workdir) remove() {
	_ = os.RemoveAll(w.path)
	if w.lock != nil {
		_ = w.lock.Close()
	}
}
