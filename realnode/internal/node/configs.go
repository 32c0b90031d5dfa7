//go:build linux

package node

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/yare-go/yare/realnode/internal/layout"
)

// writeConfigs writes the configuration files of all components into the folder of the node.
func writeConfigs(l layout.Layout, cniPlugins, snapshotter string) error {
	for _, dir := range []string{l.Path("logs"), l.Path(layout.CNIFolder)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a folder of the node: %w", err)
		}
	}
	resolv := fmt.Sprintf("nameserver %s\n", l.NodeAddress())
	files := map[string][]byte{
		layout.ContainerdConf: []byte(containerdConfig(l, cniPlugins, snapshotter)),
		layout.ResolvConf:     []byte(resolv),
	}
	for name, config := range map[string]map[string]any{
		layout.KubeletConf:                     kubeletConfig(l),
		layout.ProxyConf:                       proxyConfig(l),
		layout.CNIFolder + "/10-yare.conflist": cniConfig(l),
	} {
		text, err := json.MarshalIndent(config, "", "  ")
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(l.Path(name), text, 0o644); err != nil {
			return fmt.Errorf("write the configuration of the node: %w", err)
		}
	}
	return nil
}

// containerdConfig returns the configuration of containerd, in version 2 of its format, which
// containerd 1.6 and all later versions read. The folders in it belong to the node's own mount
// namespace.
func containerdConfig(l layout.Layout, cniPlugins, snapshotter string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
# They would make folders outside of the node, listen for plugins of the machine, or look for file
# systems that the node does not use.
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Without CAP_SYS_RESOURCE the score of a process cannot be lowered.
  restrict_oom_score_adj = true
  # containerd would load a profile into the kernel of the machine.
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`, l.Socket(), layout.PauseImage, cniPlugins, l.Path(layout.CNIFolder), snapshotter)
}

// cniConfig returns the configuration of the Pod network. Each Pod has a link of its own to the
// node, and no bridge: between the ports of a bridge, replies bypass the address translation of
// Services.
func cniConfig(l layout.Layout) map[string]any {
	return map[string]any{
		"cniVersion": "0.4.0",
		"name":       "yare",
		"plugins": []any{map[string]any{
			"type": "ptp",
			"ipam": map[string]any{
				"type":   "host-local",
				"ranges": []any{[]any{map[string]any{"subnet": l.PodNet().String()}}},
				"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	}
}

// kubeletConfig returns the configuration of the kubelet.
func kubeletConfig(l layout.Layout) map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    l.NodeAddress().String(),
		"port":       layout.KubeletPort,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": false},
			"x509":      map[string]any{"clientCAFile": l.Path(layout.CAFile)},
		},
		// Only the API server has a certificate of the node's own authority.
		"authorization":            map[string]any{"mode": "AlwaysAllow"},
		"tlsCertFile":              l.Path(layout.KubeletCert),
		"tlsPrivateKeyFile":        l.Path(layout.KubeletKey),
		"containerRuntimeEndpoint": "unix://" + l.Socket(),
		"clusterDNS":               []string{l.NodeAddress().String()},
		"clusterDomain":            layout.Domain,
		"resolvConf":               l.Path(layout.ResolvConf),
		// The node takes what the machine offers, and changes nothing on it.
		"cgroupDriver":           "cgroupfs",
		"cgroupRoot":             l.Cgroup(),
		"cgroupsPerQOS":          false,
		"enforceNodeAllocatable": []string{},
		"failCgroupV1":           false,
		"failSwapOn":             false,
		"makeIPTablesUtilChains": false,
		"oomScoreAdj":            0,
		// A machine for development is often nearly full. Its images and Pods stay.
		"evictionHard":                map[string]string{},
		"imageGCHighThresholdPercent": 100,
	}
}

// proxyConfig returns the configuration of kube-proxy.
func proxyConfig(l layout.Layout) map[string]any {
	return map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               "nftables",
		"hostnameOverride":   layout.NodeName,
		"clusterCIDR":        l.PodNet().String(),
		"detectLocalMode":    "ClusterCIDR",
		"healthzBindAddress": fmt.Sprintf("%s:%d", l.NodeAddress(), layout.ProxyHealthPort),
		"metricsBindAddress": "127.0.0.1:10249",
		"clientConnection":   map[string]any{"kubeconfig": l.Kubeconfig()},
		// A new endpoint is in the rules after this time.
		"nftables": map[string]any{"minSyncPeriod": "100ms"},
		// These settings belong to the machine.
		"conntrack": map[string]any{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
		},
		"oomScoreAdj": 0,
	}
}
