package kubelet

import (
	"fmt"
	"sync"
)

// The addresses are from a private range and lead nowhere. Loopback addresses would not
// do: the API server refuses them in EndpointSlices.

// nodeIP returns the address of the node with that number.
func nodeIP(node int) string { return fmt.Sprintf("10.127.0.%d", node+1) }

// podCIDR returns the range of Pod addresses of the node with that number.
func podCIDR(node int) string { return fmt.Sprintf("10.%d.0.0/16", firstPodNet+node) }

const firstPodNet = 128

// addresses hands out the addresses of one node's Pods.
type addresses struct {
	mu   sync.Mutex
	node int
	// next is the number after the last one that was allocated.
	next int
	used map[string]bool
}

func newAddresses(node int) *addresses {
	return &addresses{node: node, used: map[string]bool{}}
}

// allocate returns an address that no Pod has. It allocates a number for a second time only after the whole range was
// used. So a new Pod does not get the address of a Pod that was removed a moment before.
func (a *addresses) allocate() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	const size = 1<<16 - 2
	for range size {
		number := a.next%size + 1
		a.next++
		ip := fmt.Sprintf("10.%d.%d.%d", firstPodNet+a.node, number>>8, number&0xff)
		if !a.used[ip] {
			a.used[ip] = true
			return ip
		}
	}
	return "" // 65,534 Pods on one node; the API server allows none to be bound by then
}

// markUsed marks an address as used that a Pod had before this process began.
func (a *addresses) markUsed(ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[ip] = true
}

// release makes an address available again.
func (a *addresses) release(ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, ip)
}
