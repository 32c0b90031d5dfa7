package plane

import (
	"fmt"
	"strings"
	"syscall"
)

// minFreeBytes is what the data of a control plane needs at its start: etcd reserves two files of 64 MB.
const minFreeBytes = 200 << 20

// freeBytes returns how many bytes a user may write to the disk of a folder. known is false if the system does not say.
func freeBytes(folder string) (free uint64, known bool) {
	var stat syscall.Statfs_t
	if syscall.Statfs(folder, &stat) != nil {
		return 0, false
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), true //nolint:unconvert // the types differ between Linux and macOS
}

// explainFullDisk returns an error that names the full disk, if the control plane could not start and the folder of its data has
// little room. Otherwise it returns err. The stacks of a program that panics on a full disk are left out.
func explainFullDisk(err error, folder string, free uint64) error {
	if free >= minFreeBytes {
		return err
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	first, _, _ = strings.Cut(first, " (log: ")
	return fmt.Errorf("the folder %s has %d MB free, and a control plane needs %d MB for its data: make room there, or set TMPDIR to a folder with more room: %s",
		folder, free>>20, minFreeBytes>>20, first)
}
