//go:build linux

package slot

import (
	"slices"
	"strings"
	"testing"
)

func TestMountsBelow(t *testing.T) {
	t.Parallel()
	const text = `22 1 254:0 / / rw - ext4 /dev/vda rw
40 22 254:0 / /var/tmp/yare-node-1/a rw - ext4 /dev/vda rw
41 40 0:9 / /var/tmp/yare-node-1/a/with\040space rw - tmpfs tmpfs rw
42 22 0:9 / /var/tmp/yare-node-10/b rw - tmpfs tmpfs rw
43 22 0:9 / /var/tmp/yare-node-1 rw - tmpfs tmpfs rw
`
	want := []string{"/var/tmp/yare-node-1/a/with space", "/var/tmp/yare-node-1/a"}
	if got, err := mountsBelow("/var/tmp/yare-node-1", strings.NewReader(text)); err != nil || !slices.Equal(got, want) {
		t.Errorf("the mounts are %q, %v, want %q", got, err, want)
	}
}
