package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/filelock"
)

const (
	// The binary of the control plane is some 190 MB; a few are kept, for those who go back and
	// forth between branches, Go versions or minor versions of Kubernetes.
	keptBinaries = 5
	// Younger binaries are kept in any case, because somebody may be about to start one.
	keptFor = time.Hour
)

// cache holds binaries of a module's program, each in a folder named by its key:
//
//	KEY/PROGRAM   the binary; its modification time is when it was last used
//	KEY/lock      locked by the process that builds, and holds its id
//	KEY/build-*   the folder of a build that runs, or was interrupted
//
// Only a complete binary ever has the name of the program, by a rename.
type cache struct {
	module  Module
	dir     string
	console *console.Console
}

// getOrBuild returns the path of the binary of this key. If there is none, getOrBuild calls build, which must write the
// binary into dir, under the name of the program.
func (c cache) getOrBuild(
	ctx context.Context, key string, build func(ctx context.Context, dir string) error,
) (string, error) {
	path := filepath.Join(c.dir, key, c.module.Folder)
	if markUsed(path) {
		return path, nil
	}
	lock, err := c.lock(ctx, filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if markUsed(path) { // another process built it meanwhile
		return path, nil
	}
	if err := c.buildLocked(ctx, path, build); err != nil {
		return "", err
	}
	c.prune(key)
	return path, nil
}

// markUsed marks the binary as used now, and reports whether it exists.
func markUsed(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // a cache that cannot be written can still be read
	return true
}

// buildLocked builds a binary, and gives the complete binary its path. The caller holds the lock of the key.
func (c cache) buildLocked(ctx context.Context, path string, build func(context.Context, string) error) error {
	folder := filepath.Dir(path)
	// This process holds the lock, so the remains of a build are left by an interrupted build.
	leftovers, err := filepath.Glob(filepath.Join(folder, "build-*"))
	if err != nil {
		return fmt.Errorf("look for interrupted builds: %w", err)
	}
	for _, name := range leftovers {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("remove what an interrupted build left: %w", err)
		}
	}
	dir, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return fmt.Errorf("make a folder to build %s in: %w", c.module.Title, err)
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, c.module.Folder), path); err != nil {
		return fmt.Errorf("keep the binary of %s that was built: %w", c.module.Title, err)
	}
	return nil
}

// lock waits for the lock in the folder of a key, and returns the locked file. Another process may have built the
// binary meanwhile.
func (c cache) lock(ctx context.Context, folder string) (*os.File, error) {
	task := c.console.Task()
	defer task.Done()
	started := time.Now()
	for {
		// This is repeated, because prune may have removed the folder.
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("make the cache folder of %s: %w: "+
				"make it writable, or set XDG_CACHE_HOME to a folder that is", c.module.Title, err)
		}
		file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			return nil, fmt.Errorf("open the lock of the cache of %s: %w", c.module.Title, err)
		}
		err = filelock.Try(file, filelock.Exclusive)
		if err == nil && filelock.IsCurrent(file) {
			if err := file.Truncate(0); err == nil {
				_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
			}
			return file, nil
		}
		_ = file.Close()
		if err != nil && !errors.Is(err, filelock.ErrHeld) {
			return nil, err
		}
		task.Set("waiting for %s, which is compiling %s (%s)",
			lockHolder(folder), c.module.Title, console.Duration(time.Since(started)))
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lockHolder returns a description of the process that holds the lock of a folder.
func lockHolder(folder string) string {
	data, err := os.ReadFile(filepath.Join(folder, "lock"))
	if pid := strings.TrimSpace(string(data)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

// prune removes the binaries that were not used within keptFor and are not in use now. It keeps the binary of the key
// current and the keptBinaries-1 others that were used last. It ignores errors, because it runs again after the next
// build.
func (c cache) prune(current string) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type usedBinary struct {
		key  string
		used time.Time
	}
	var others []usedBinary
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == current {
			continue
		}
		info, err := os.Stat(filepath.Join(c.dir, entry.Name(), c.module.Folder))
		if err != nil {
			info, err = entry.Info() // A folder of a build that failed.
		}
		if err == nil {
			others = append(others, usedBinary{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(others, func(a, b usedBinary) int { return b.used.Compare(a.used) })
	for i, o := range others {
		if i < keptBinaries-1 || time.Since(o.used) < keptFor {
			continue
		}
		c.remove(filepath.Join(c.dir, o.key))
	}
}

// remove removes the folder of a key, unless a process builds in it or runs its binary. A running
// plane holds a lock on its binary, because it starts its children from that file.
func (c cache) remove(folder string) {
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return
	}
	defer lock.Close()
	if filelock.Try(lock, filelock.Exclusive) != nil ||
		filelock.IsHeld(filepath.Join(folder, c.module.Folder), filelock.Exclusive) {
		return
	}
	_ = os.RemoveAll(folder)
}
