// Package memory keeps the memory of a program within the limit of its container, and gives free memory back.
package memory

import (
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Limit sets the memory limit of the garbage collector to nine tenths of the limit of the container. Go
// does not read that limit by itself. For example, a container with 256 MiB gives 230 MiB. Near the limit,
// frequent collections are better than to be killed. A tenth is left for memory that the collector does not
// count. If GOMEMLIMIT is set, Limit changes nothing. restore sets the previous limit.
func Limit(log *slog.Logger) (restore func()) {
	if os.Getenv("GOMEMLIMIT") != "" || runtime.GOOS != "linux" {
		return func() {}
	}
	limit, ok := memoryLimit(os.DirFS("/"))
	if !ok {
		return func() {}
	}
	wanted := limit / 10 * 9
	before := debug.SetMemoryLimit(wanted)
	log.Debug("the garbage collector keeps to a memory limit", "bytes", wanted, "container", limit)
	return func() { debug.SetMemoryLimit(before) }
}

// memoryLimit returns the lowest limit of the control groups of this process, in bytes. The groups are that of
// the process and the groups around it, as far as a container shows them. root is the root of the file system.
// A file that cannot be read sets no limit.
func memoryLimit(root fs.FS) (limit int64, ok bool) {
	memberships, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, false
	}
	for _, group := range memoryGroups(string(memberships), string(mounts)) {
		for _, folder := range group.folders() {
			found, hasLimit := readLimit(root, folder+"/"+group.file)
			if hasLimit && (!ok || found < limit) {
				limit, ok = found, true
			}
		}
	}
	return limit, ok
}

// readLimit returns the number of bytes in a file. It returns false if there is no limit, for which
// the file contains max in version 2, and the largest number of pages in version 1.
func readLimit(root fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || limit <= 0 || limit >= 1<<62 {
		return 0, false
	}
	return limit, true
}
