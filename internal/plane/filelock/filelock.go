// Package filelock locks files between processes. The lock belongs to the open file, so the
// kernel releases it when its holder dies, however it dies.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Mode is how a file is locked.
type Mode int

// Several processes may hold a Shared lock, one an Exclusive lock.
const (
	Shared    Mode = syscall.LOCK_SH
	Exclusive Mode = syscall.LOCK_EX
)

// ErrHeld means that another process holds the lock.
var ErrHeld = errors.New("locked by another process")

// Try locks an open file without waiting.
func Try(f *os.File, mode Mode) error {
	for {
		err := syscall.Flock(int(f.Fd()), int(mode)|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// IsHeld reports whether another process holds a lock on the named file that conflicts with
// mode: with Shared an exclusive lock, with Exclusive any lock.
func IsHeld(name string, mode Mode) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(Try(f, mode), ErrHeld)
}

// IsCurrent reports whether f is still the file of its name. The file may have been removed while the process
// waited for its lock.
func IsCurrent(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named)
}
