//go:build linux

// Package network connects a real node, which has a network namespace of its own, with the
// machine by a pair of virtual links.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/yare-go/yare/realnode/internal/layout"
)

// IsFree reports whether no route of this machine leads into the networks of a slot. It returns
// false also when the routes cannot be read.
func IsFree(l layout.Layout) bool {
	nets, err := routedNets()
	if err != nil {
		return false
	}
	for _, routed := range nets {
		if routed.link != l.Link() && (routed.net.Overlaps(l.LinkNet()) || routed.net.Overlaps(l.PodNet())) {
			return false
		}
	}
	return true
}

// routedNet is a network that a route of this machine leads to.
type routedNet struct {
	net  netip.Prefix
	link string
}

// routedNets returns the networks of all routes but the default route and routes to all private
// addresses.
func routedNets() ([]routedNet, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("read the routes of this machine: %w", err)
	}
	var nets []routedNet
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(route.Dst.IP)
		bits, _ := route.Dst.Mask.Size()
		const widest = 8 // such a route is a default route of a private network
		if !ok || bits <= widest {
			continue
		}
		name := ""
		if link, err := netlink.LinkByIndex(route.LinkIndex); err == nil {
			name = link.Attrs().Name
		}
		nets = append(nets, routedNet{netip.PrefixFrom(address.Unmap(), bits), name})
	}
	return nets, nil
}

// Connect makes the link between this machine and the network namespace of a process, and the
// routes of this machine to the node and its Pods. It reports whether it made the route to the
// cluster IPs of Services, too: another route of this machine may already lead into that network.
func Connect(l layout.Layout, pid int) (hasServiceRoute bool, err error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = l.Link()
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: layout.NodeLink, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return false, fmt.Errorf("make the link %s: %w", l.Link(), err)
	}
	link, err := configure(l.Link(), netip.PrefixFrom(l.HostAddress(), l.LinkNet().Bits()))
	if err != nil {
		return false, err
	}
	nets, err := routedNets()
	if err != nil {
		return false, err
	}
	hasServiceRoute = true
	for _, routed := range nets {
		if routed.net.Overlaps(layout.ServiceNet()) {
			hasServiceRoute = false
		}
	}
	targets := []netip.Prefix{l.PodNet()}
	if hasServiceRoute {
		targets = append(targets, layout.ServiceNet())
	}
	for _, target := range targets {
		if err := addRoute(link, target, l.NodeAddress()); err != nil {
			return false, err
		}
	}
	return hasServiceRoute, nil
}

// Remove removes a link. Its routes and its other end go with it. A link that does not exist is no
// error.
func Remove(name string) error {
	link, err := netlink.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil
	}
	if err == nil {
		err = deleteLink(link)
	}
	if err != nil {
		return fmt.Errorf("remove the link %s: %w", name, err)
	}
	return nil
}

// deleteLink deletes a link. The kernel deletes the link too, some time after the network namespace of the
// node has ended, so a link that no longer exists is no error.
func deleteLink(link netlink.Link) error {
	if err := netlink.LinkDel(link); !errors.Is(err, syscall.ENODEV) {
		return err
	}
	return nil
}

// ConfigureNode sets up the network namespace of this process as the node's: its loopback link, the
// node's end of the link, and a default route to the machine. It waits until the link exists.
func ConfigureNode(ctx context.Context, l layout.Layout) error {
	loopback, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(loopback)
	}
	if err != nil {
		return fmt.Errorf("set up the loopback link: %w", err)
	}
	for {
		if _, err := netlink.LinkByName(layout.NodeLink); err == nil {
			break
		}
		const interval = 10 * time.Millisecond
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the link %s: %w", layout.NodeLink, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
	link, err := configure(layout.NodeLink, netip.PrefixFrom(l.NodeAddress(), l.LinkNet().Bits()))
	if err != nil {
		return err
	}
	return addRoute(link, netip.PrefixFrom(netip.IPv4Unspecified(), 0), l.HostAddress())
}

// configure gives a link its address and starts it.
func configure(name string, address netip.Prefix) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find the link %s: %w", name, err)
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
		return nil, fmt.Errorf("give the link %s the address %s: %w", name, address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("start the link %s: %w", name, err)
	}
	return link, nil
}

func addRoute(link netlink.Link, target netip.Prefix, gateway netip.Addr) error {
	err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(target), Gw: gateway.AsSlice()})
	if err != nil {
		return fmt.Errorf("add the route to %s: %w", target, err)
	}
	return nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	address := prefix.Addr()
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(prefix.Bits(), address.BitLen())}
}
