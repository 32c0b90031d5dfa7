// Package layout names everything that a real node uses on the machine. All names follow from the
// number of the node's slot, so that a later process finds what a killed process left.
package layout

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

const (
	// Slots is the number of real nodes that a machine can run at the same time.
	Slots = 16
	// NodeName is the name of the Node object. A cluster has at most one real node.
	NodeName = "yare-node"
	// KubeletPort is the port of the kubelet's server.
	KubeletPort = 10250
	// ProxyHealthPort is the port of kube-proxy's health check.
	ProxyHealthPort = 10256
	// APIPort is the port on the host's end of the link at which the node reaches the API server.
	APIPort = 6443
	// APIServerName is a name in the API server's certificate.
	APIServerName = "kubernetes.default.svc"
	// Domain is the DNS domain of the cluster.
	Domain = "cluster.local"
	// PauseImage is the image of the sandbox of each Pod.
	PauseImage = "localhost/yare/pause:1"

	// parent is a folder that survives a restart of the machine, is writable on every system, and
	// is not in memory.
	parent = "/var/tmp"
)

// Layout holds the names of one slot.
type Layout struct {
	// Slot is the number of the slot, from 0 to Slots-1.
	Slot int
}

// Dir returns the path of the node's folder.
func (l Layout) Dir() string { return filepath.Join(parent, fmt.Sprintf("yare-node-%d", l.Slot)) }

// Path returns a path in the node's folder.
func (l Layout) Path(elements ...string) string {
	return filepath.Join(append([]string{l.Dir()}, elements...)...)
}

// Socket returns the path of containerd's socket.
func (l Layout) Socket() string { return l.Path("containerd.sock") }

// LogFile returns the path of the log of a component.
func (l Layout) LogFile(component string) string { return l.Path("logs", component+".log") }

// Kubeconfig returns the path of the kubeconfig file of the node's components.
func (l Layout) Kubeconfig() string { return l.Path("node.kubeconfig") }

// Link returns the name of the host's end of the link between the machine and the node.
func (l Layout) Link() string { return fmt.Sprintf("yare%d", l.Slot) }

// NodeLink is the name of the node's end of the link.
const NodeLink = "eth0"

// Cgroup returns the path of the control group of all containers.
func (l Layout) Cgroup() string { return fmt.Sprintf("/yare-node-%d", l.Slot) }

// HostAddress returns the address of the host's end of the link.
func (l Layout) HostAddress() netip.Addr { return l.linkAddress(1) }

// NodeAddress returns the address of the node's end of the link.
func (l Layout) NodeAddress() netip.Addr { return l.linkAddress(2) }

func (l Layout) linkAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 127, 255, byte(4*l.Slot + number)})
}

// LinkNet returns the network of the link.
func (l Layout) LinkNet() netip.Prefix {
	return netip.PrefixFrom(l.linkAddress(0), linkBits)
}

// linkBits leaves room for two addresses.
const linkBits = 30

// PodNet returns the network of the node's Pods.
func (l Layout) PodNet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(128 + l.Slot), 0, 0}), 16)
}

// ServiceNet returns the network of the cluster IPs of Services. All control planes of yare use
// the same network.
func ServiceNet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, 0, 0}), 16)
}

// The certificates and keys, relative to the node's folder.
const (
	CAFile         = "pki/ca.crt"
	KubeletCert    = "pki/kubelet.crt"
	KubeletKey     = "pki/kubelet.key"
	APIServerCert  = "pki/apiserver.crt"
	APIServerKey   = "pki/apiserver.key"
	PauseArchive   = "pause.tar"
	ResolvConf     = "resolv.conf"
	ContainerdConf = "containerd.toml"
	KubeletConf    = "kubelet.json"
	ProxyConf      = "kube-proxy.json"
	CNIFolder      = "cni"
)

// APIServerArgs returns the arguments that kube-apiserver needs to reach the node's kubelet.
func (l Layout) APIServerArgs() []string {
	return []string{
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + l.Path(CAFile),
		"--kubelet-client-certificate=" + l.Path(APIServerCert),
		"--kubelet-client-key=" + l.Path(APIServerKey),
	}
}
