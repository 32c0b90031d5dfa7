//go:build linux

package network

import (
	"fmt"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
)

// The end of a node found its link, and the kernel deleted the link first: the folder of the node was left.
func TestDeleteLinkThatTheKernelHasDeleted(t *testing.T) {
	t.Parallel()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = fmt.Sprintf("yt%d", os.Getpid())
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: attributes.Name + "p"}); err != nil {
		t.Skipf("this user may not make links: %v", err)
	}
	link, err := netlink.LinkByName(attributes.Name)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := deleteLink(link); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(attributes.Name); err != nil {
		t.Fatal(err)
	}
}
