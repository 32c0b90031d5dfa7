package plane

import (
	"errors"
	"strings"
	"testing"
)

// A full disk was reported by the stack of etcd.
func TestFullDiskIsExplained(t *testing.T) {
	t.Parallel()
	err := errors.New("start the control plane: etcd ended: exit status 2 (log: go.uber.org/zap.(*Logger).Panic(0x24)\n\tzap/logger.go:285)")
	if got := explainFullDisk(err, "/tmp", minFreeBytes); got != err {
		t.Errorf("with room enough the error is %q", got)
	}
	got := explainFullDisk(err, "/tmp/tiny", 30<<20).Error()
	const want = "the folder /tmp/tiny has 30 MB free, and a control plane needs 200 MB for its data: make room there, or set TMPDIR to a folder with more room: start the control plane: etcd ended: exit status 2"
	if got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
	if free, known := freeBytes(t.TempDir()); !known || free == 0 {
		t.Errorf("the folder for tests has %d bytes free (%t)", free, known)
	}
	if _, known := freeBytes(strings.Repeat("nothing/", 5)); known {
		t.Error("a folder that does not exist has room")
	}
}
