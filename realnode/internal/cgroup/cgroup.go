//go:build linux

// Package cgroup makes and removes control groups, of both versions.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
)

// retryInterval is the wait before another attempt to remove a group whose processes are ending.
const retryInterval = 20 * time.Millisecond

// Make makes the control group of that name in every hierarchy. The group may exist.
func Make(name string) error {
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		dir := filepath.Join(mount, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the control group %s: %w", name, err)
		}
		// In version 1, a new group has no processors and no memory nodes, and takes no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(mount, dir, file); err != nil {
				return fmt.Errorf("make the control group %s: %w", name, err)
			}
		}
	}
	return nil
}

// inherit copies a setting of a group to a group below it, if the setting exists and is empty.
func inherit(parent, dir, file string) error {
	current, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(current)) != "" {
		return nil
	}
	if err != nil {
		return err
	}
	value, err := os.ReadFile(filepath.Join(parent, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // in version 2, the root has no settings, and an empty one means all
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), value, 0o644)
}

// Remove ends all processes in the control group of that name, and removes the group with all
// groups below it, in every hierarchy. A group that does not exist is no error.
func Remove(ctx context.Context, name string) error {
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := removeTree(ctx, filepath.Join(mount, name)); err != nil {
			return fmt.Errorf("remove the control group %s: %w", name, err)
		}
	}
	return nil
}

// mountPoints returns where the hierarchies are mounted.
func mountPoints() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	defer file.Close()
	return cgroupMounts(file)
}

// cgroupMounts returns the mount points of cgroup file systems in a mountinfo file.
func cgroupMounts(file io.Reader) (points []string, err error) {
	mounts, err := mountinfo.GetMountsFromReader(file, mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	for _, mount := range mounts {
		points = append(points, mount.Mountpoint)
	}
	return points, nil
}

func removeTree(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(ctx, filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	for {
		err := syscall.Rmdir(dir)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		killAll(dir)
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove %s: its processes do not end: %w", dir, ctx.Err())
		case <-time.After(retryInterval):
		}
	}
}

// killAll kills the processes in one group.
func killAll(dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(data)) {
		// A process of another process namespace has the ID 0.
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
