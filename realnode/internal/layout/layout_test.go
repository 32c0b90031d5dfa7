package layout

import (
	"net/netip"
	"testing"
)

func TestSlotsShareNothing(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	var nets []netip.Prefix
	for slot := range Slots {
		l := Layout{Slot: slot}
		for _, name := range []string{l.Dir(), l.Link(), l.Cgroup()} {
			if names[name] {
				t.Errorf("slot %d shares %s with another slot", slot, name)
			}
			names[name] = true
		}
		if len(l.Link()) > 15 {
			t.Errorf("%s is too long for the name of a link", l.Link())
		}
		if len(l.Socket()) > 90 {
			t.Errorf("%s is too long for a socket", l.Socket())
		}
		for _, address := range []netip.Addr{l.HostAddress(), l.NodeAddress()} {
			if !l.LinkNet().Contains(address) {
				t.Errorf("%s is not in %s", address, l.LinkNet())
			}
		}
		nets = append(nets, l.LinkNet(), l.PodNet())
	}
	nets = append(nets, ServiceNet())
	for i, one := range nets {
		for _, other := range nets[:i] {
			if one.Overlaps(other) {
				t.Errorf("%s overlaps %s", one, other)
			}
		}
	}
}
