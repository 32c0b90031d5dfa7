// Package memory keeps the memory of a program within the limit of its container, and low at the start.
package memory

import (
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/yare-go/yare/operator/internal/cgroup"
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

// memoryLimit returns the lowest limit of the control groups of this process, in bytes. root is the root of the file
// system.
func memoryLimit(root fs.FS) (limit int64, ok bool) {
	return cgroup.LowestLimit(root, "memory", func(folder string, isVersion1 bool) (int64, bool) {
		if isVersion1 {
			return readLimit(root, folder+"/memory.limit_in_bytes")
		}
		return readLimit(root, folder+"/memory.max")
	})
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
