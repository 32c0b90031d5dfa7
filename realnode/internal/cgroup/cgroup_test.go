//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCgroupMounts(t *testing.T) {
	t.Parallel()
	const text = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:25 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:7 - cgroup cgroup rw,cpu
32 30 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	want := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"}
	if got, err := cgroupMounts(strings.NewReader(text)); err != nil || !slices.Equal(got, want) {
		t.Errorf("the mounts are %v, %v, want %v", got, err, want)
	}
}

func TestMakeAndRemove(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("/yare-test-%d", os.Getpid())
	if err := Make(name); err != nil {
		_ = Remove(t.Context(), name)
		t.Skipf("this user may not make control groups: %v", err)
	}
	if err := Make(name); err != nil {
		t.Errorf("the group exists: %v", err)
	}
	if err := Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mounts, err := mountPoints()
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range mounts {
		if _, err := os.Stat(filepath.Join(mount, name)); !os.IsNotExist(err) {
			t.Errorf("the group is still in %s: %v", mount, err)
		}
	}
}

func TestRemoveOfNothing(t *testing.T) {
	t.Parallel()
	if err := Remove(t.Context(), "/yare-there-is-no-such-group"); err != nil {
		t.Error(err)
	}
}
