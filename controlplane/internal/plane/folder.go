// Package plane lays out one control plane: its private folder, its certificates, its
// ports, the arguments of its components, and how to see that they are ready.
package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	folderPrefix = "yare-up-"
	lockName     = "lock"
	// socketLimit is the longest path a unix socket can have everywhere.
	socketLimit = 103
)

// Folder is the private folder of a plane. It is locked for as long as the process lives
// that made it, so that what a killed one left can be told from what is in use.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes a folder: a temporary one if no path is given. A path that is given
// must not exist, be empty, or be what a killed plane left.
func NewFolder(path string) (*Folder, error) {
	if path == "" {
		temporary, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return nil, fmt.Errorf("making a temporary folder: %w", err)
		}
		path = temporary
	} else if err := prepare(path); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the folder: %w", err)
	}
	if socket := filepath.Join(path, etcdSocket); len(socket) > socketLimit {
		_ = os.Remove(path)
		return nil, fmt.Errorf("the path of the folder is too long for a socket in it (%d of %d bytes): choose a shorter --dir or TMPDIR", len(socket), socketLimit)
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	return &Folder{Path: path, lock: lock}, nil
}

// prepare makes a folder at a path that the user chose.
func prepare(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("reading the folder: %w", err)
	}
	if len(entries) == 0 {
		return os.Chmod(path, 0o700)
	}
	if _, err := os.Stat(filepath.Join(path, lockName)); err != nil {
		return fmt.Errorf("%s is not empty, and no control plane made it: choose another --dir", path)
	}
	if !sweep(path) {
		return fmt.Errorf("%s is in use by another control plane: choose another --dir", path)
	}
	return os.MkdirAll(path, 0o700)
}

// lockFolder makes and locks the file in a folder that says that it is in use.
func lockFolder(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the lock of the folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	return lock, nil
}

// Remove removes the folder and all that is in it.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.Path)
	f.lock.Close() // only now: nobody else should begin to remove it
	if err != nil {
		return fmt.Errorf("removing the folder: %w", err)
	}
	return nil
}

// Join is a path in the folder.
func (f *Folder) Join(elements ...string) string {
	return filepath.Join(append([]string{f.Path}, elements...)...)
}

// Sweep removes the temporary folders of planes that were killed, and returns their
// paths.
func Sweep() []string {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return nil
	}
	var swept []string
	for _, entry := range entries {
		path := filepath.Join(os.TempDir(), entry.Name())
		if entry.IsDir() && strings.HasPrefix(entry.Name(), folderPrefix) && sweep(path) {
			swept = append(swept, path)
		}
	}
	return swept
}

// sweep removes a folder if it belongs to no living plane, and reports whether it did.
func sweep(path string) bool {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if os.IsNotExist(err) {
		// Either it was made a moment ago, or its plane died in that moment.
		info, err := os.Stat(path)
		return err == nil && time.Since(info.ModTime()) > time.Minute && os.RemoveAll(path) == nil
	}
	if err != nil {
		return false // another user's
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	return os.RemoveAll(path) == nil
}

// Clear removes all that is in the folder but its lock.
func (f *Folder) Clear() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return fmt.Errorf("clearing the folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(f.Join(entry.Name())); err != nil {
			return fmt.Errorf("clearing the folder: %w", err)
		}
	}
	return nil
}
