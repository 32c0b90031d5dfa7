// Package layout lays out one control plane: its private folder, its certificates, its
// ports, the arguments of its components, and how to see that they are ready.
package layout

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	folderPrefix = "yare-up-"
	lockName     = "lock"
	// marker is the content of the lock file. A folder without it was not made by a plane.
	marker = "This folder belongs to a control plane of yare, and is removed with it.\n"
	// socketLimit is the longest path a unix socket can have everywhere.
	socketLimit = 103
)

// Folder is the private folder of a plane. The process that made it keeps it locked, so Sweep can distinguish
// folders in use from the folders of killed processes.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes a folder at path, or a temporary one if path is empty. At path there must be
// nothing, an empty folder, or the folder of a killed plane.
func NewFolder(path string) (*Folder, error) {
	isTemporary := path == ""
	if isTemporary {
		temporary, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		path = temporary
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	if socket := filepath.Join(path, etcdSocket); len(socket) > socketLimit {
		if isTemporary {
			_ = os.Remove(path)
		}
		return nil, fmt.Errorf(
			"the path of the folder is too long for a socket in it (%d of %d bytes): choose a shorter --dir or TMPDIR",
			len(socket), socketLimit)
	}
	if !isTemporary {
		if err := makeFolder(path); err != nil {
			return nil, err
		}
	}
	lock, err := lockFolder(path)
	if err != nil {
		if isTemporary {
			_ = os.RemoveAll(path)
		}
		return nil, err
	}
	return &Folder{Path: path, lock: lock}, nil
}

// makeFolder makes a folder at a path that the user chose.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("read the folder: %w", err)
	}
	if len(entries) == 0 {
		return os.Chmod(path, 0o700)
	}
	if lock, err := openLock(path); err == nil {
		lock.Close()
	} else {
		return fmt.Errorf("%s is not empty, and no control plane made it: choose another --dir", path)
	}
	if !sweep(path) {
		return fmt.Errorf("%s is in use by another control plane: choose another --dir", path)
	}
	return os.MkdirAll(path, 0o700)
}

// lockFolder makes and locks the file that marks a folder as in use. The file gets its name
// when it is locked, so that Sweep never finds an unlocked file in the folder of a living
// process.
func lockFolder(path string) (*os.File, error) {
	lock, err := os.CreateTemp(path, lockName+"-")
	if err != nil {
		return nil, fmt.Errorf("make the lock of the folder: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = lock.WriteString(marker)
	}
	if err == nil {
		err = os.Rename(lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock the folder %s: %w", path, err)
	}
	return lock, nil
}

// Remove removes the folder and all that is in it.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.Path)
	f.lock.Close() // only now, so that Sweep does not remove the folder at the same time
	if err != nil {
		return fmt.Errorf("remove the folder: %w", err)
	}
	return nil
}

// Join returns a path in the folder.
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

// sweep removes a folder if a plane of this user made it and no living plane uses it. It reports whether it did.
func sweep(path string) bool {
	lock, err := openLock(path)
	if err != nil {
		return false
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	return os.RemoveAll(path) == nil
}

// openLock opens the lock of a folder that a plane of this user has made. It returns an error for every other folder,
// and follows no link: everybody can make a folder of any name beside the temporary ones.
func openLock(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s is no folder of this user", path)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	content := make([]byte, len(marker)+1)
	n, err := io.ReadFull(lock, content)
	if err != io.ErrUnexpectedEOF || string(content[:n]) != marker { //nolint:errorlint // as it is documented
		lock.Close()
		return nil, fmt.Errorf("%s is not the lock of a control plane", lock.Name())
	}
	return lock, nil
}

// Clear removes all that is in the folder but its lock.
func (f *Folder) Clear() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return fmt.Errorf("clear the folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(f.Join(entry.Name())); err != nil {
			return fmt.Errorf("clear the folder: %w", err)
		}
	}
	return nil
}
