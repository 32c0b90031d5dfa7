package operator

import (
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
)

// limitMemory tells the garbage collector about the memory limit of the container, which
// Go does not look at by itself: near it, it is better to collect more often than to be
// killed. A tenth is left for what the collector does not count. If GOMEMLIMIT is set, that
// is what somebody wants. The returned function puts things back.
func limitMemory(log *slog.Logger) (restore func()) {
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

// memoryLimit is the lowest limit of the control groups that this process is in, in bytes:
// its own and those around it, as far as they can be seen from inside of a container. Root
// is the file system's. What cannot be read sets no limit.
func memoryLimit(root fs.FS) (limit int64, ok bool) {
	memberships, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, false
	}
	for _, folder := range memoryGroups(string(memberships), string(mounts)) {
		for _, group := range folder.upwards() {
			found, has := readLimit(root, group+"/"+folder.file)
			if has && (!ok || found < limit) {
				limit, ok = found, true
			}
		}
	}
	return limit, ok
}
