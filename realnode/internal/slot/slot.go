//go:build linux

// Package slot gives each real node of a machine a slot of its own, and removes what killed nodes
// left.
package slot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/yare-go/yare/realnode/internal/cgroup"
	"github.com/yare-go/yare/realnode/internal/layout"
	"github.com/yare-go/yare/realnode/internal/network"
)

const (
	lockName = "lock"
	// marker is the content of the lock file. It marks a folder as one of ours.
	marker = "This folder belongs to a real node of yare, and is removed with it.\n"
	// cleanTimeout bounds the wait for processes that were killed.
	cleanTimeout = 10 * time.Second
)

// Slot is a slot that this process holds.
type Slot struct {
	layout.Layout
	lock *os.File
}

// ClearAndTake removes what killed nodes have left in all slots, and takes the first free slot for which isUsable
// returns true. The folder of the slot exists then and is empty but for its lock.
func ClearAndTake(ctx context.Context, isUsable func(layout.Layout) bool) (*Slot, error) {
	var taken *Slot
	var reasons []error
	for number := range layout.Slots {
		l := layout.Layout{Slot: number}
		wanted := taken == nil && isUsable(l)
		if _, err := os.Lstat(l.Dir()); errors.Is(err, fs.ErrNotExist) && !wanted {
			continue
		}
		s, err := lockSlot(l)
		if err == nil {
			err = s.clear(ctx)
		}
		switch {
		case err != nil:
			reasons = append(reasons, fmt.Errorf("%s: %w", l.Dir(), err))
			if s != nil {
				_ = s.lock.Close()
			}
		case wanted:
			taken = s
		default:
			if err := s.removeFolder(); err != nil {
				reasons = append(reasons, err)
			}
		}
	}
	if taken == nil {
		return nil, fmt.Errorf(
			"none of the %d slots for real nodes is free, or their networks are in use on this machine: %w",
			layout.Slots, errors.Join(reasons...))
	}
	return taken, nil
}

// errInUse means that another process holds a slot.
var errInUse = errors.New("in use by another process")

// lockSlot makes the folder of a slot if need be, and locks it.
func lockSlot(l layout.Layout) (*Slot, error) {
	const tries = 3
	for range tries {
		if err := os.Mkdir(l.Dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := checkOwner(l.Dir()); err != nil {
			return nil, err
		}
		lock, err := os.OpenFile(l.Path(lockName), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the holder removed the folder
		}
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close()
			return nil, errInUse
		}
		// The holder may have removed the file between its opening and its locking.
		held, err := lock.Stat()
		if current, statErr := os.Stat(l.Path(lockName)); err != nil || statErr != nil || !os.SameFile(held, current) {
			_ = lock.Close()
			continue
		}
		if _, err := lock.WriteAt([]byte(marker), 0); err != nil {
			_ = lock.Close()
			return nil, err
		}
		return &Slot{Layout: l, lock: lock}, nil
	}
	return nil, errInUse
}

// checkOwner returns an error if the folder may belong to somebody else: everybody may make
// files in the folder above.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || stat.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0 {
		return errors.New("this is not a private folder of this user, so it is left alone: remove it")
	}
	return nil
}

// clear removes everything of the slot but its folder and its lock: processes, the link, mounts
// and files.
func (s *Slot) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	if err := cgroup.Remove(ctx, s.Cgroup()); err != nil {
		return err
	}
	if err := network.Remove(s.Link()); err != nil {
		return err
	}
	if err := unmountBelow(s.Dir()); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		return fmt.Errorf("read the folder of the node: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.Dir(), entry.Name())); err != nil {
			return fmt.Errorf("remove what a node left: %w", err)
		}
	}
	return nil
}

// Release removes everything of the slot and gives it back. No process of the node may run any
// more.
func (s *Slot) Release() error {
	// The end of the program must not keep it from cleaning up, so no context ends this.
	return errors.Join(s.clear(context.Background()), s.removeFolder())
}

func (s *Slot) removeFolder() error {
	defer s.lock.Close()
	if err := os.Remove(s.Path(lockName)); err != nil {
		return fmt.Errorf("remove the lock of the node's folder: %w", err)
	}
	// Another process may just take the slot.
	if err := os.Remove(s.Dir()); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("remove the node's folder: %w", err)
	}
	return nil
}

// unmountBelow unmounts what is mounted below dir. The mounts of a node are in its own mount
// namespace and end with it. If a mount is left, the files behind it must not be removed.
func unmountBelow(dir string) error {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read the mounts: %w", err)
	}
	defer file.Close()
	points, err := mountsBelow(dir, file)
	if err != nil {
		return fmt.Errorf("read the mounts: %w", err)
	}
	for _, point := range points {
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// mountsBelow returns the mount points below dir in a mountinfo file, the last mount first.
func mountsBelow(dir string, file io.Reader) (points []string, err error) {
	mounts, err := mountinfo.GetMountsFromReader(file, mountinfo.PrefixFilter(dir))
	for _, mount := range slices.Backward(mounts) {
		if mount.Mountpoint != dir {
			points = append(points, mount.Mountpoint)
		}
	}
	return points, err
}
