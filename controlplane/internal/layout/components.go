package layout

import (
	"fmt"
	"net"
	"strconv"
)

// The components, by the names of their commands.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

// Components returns all components in the order in which they depend on each other.
func Components() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kubelet}
}

// APIServerClients returns the components that are clients of the API server. While the API server is away, they try to
// reach it more and more rarely, in the end every 30 s.
func APIServerClients() []string { return []string{ControllerManager, Scheduler, Kubelet} }

const (
	etcdSocket = "etcd.sock"
	// dialSocket is where the API server dials through package egress. Its name is not longer than that of etcdSocket.
	dialSocket = "dial.sock"
	egressFile = "egress.yaml"
	// serviceRange is where Services get their addresses.
	serviceRange = "10.96.0.0/16"
)

// serviceAddress returns the address of the Service `kubernetes`, the first of the range.
func serviceAddress() net.IP { return net.IPv4(10, 96, 0, 1) }

// ports are the ports that the components listen on.
type ports struct{ apiServer, scheduler int }

// emulation returns the arguments of a component that emulates a minor version, which may be empty.
func emulation(minor string) []string {
	if minor == "" {
		return nil
	}
	return []string{"--emulated-version=" + minor}
}

func etcdArgs(f *Folder) []string {
	return []string{
		"--data-dir=" + f.Join("etcd"),
		"--listen-client-url=unix://" + f.Join(etcdSocket),
	}
}

func apiServerArgs(f *Folder, etcd string, p ports, extra []string) []string {
	return append([]string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.apiServer),
		// Without these a machine without a default route cannot start it.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + f.Join("apiserver"),
		"--tls-cert-file=" + f.Join(serverCertFile),
		"--tls-private-key-file=" + f.Join(serverKeyFile),
		"--client-ca-file=" + f.Join(caFile),
		"--authentication-config=" + f.Join(authenticationFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + f.Join(signingPublicFile),
		"--service-account-signing-key-file=" + f.Join(signingKeyFile),
		"--service-cluster-ip-range=" + serviceRange,
		"--allow-privileged=true",
		"--requestheader-client-ca-file=" + f.Join(frontProxyCAFile),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + f.Join(frontProxyCertFile),
		"--proxy-client-key-file=" + f.Join(frontProxyKeyFile),
		// The nodes' addresses are made up; their kubelet really listens on localhost.
		"--kubelet-preferred-address-types=InternalDNS",
		// It taints each new node until the node lifecycle controller has seen it Ready,
		// which only delays the first Pod.
		"--disable-admission-plugins=TaintNodesByCondition",
		// Extra arguments can name another file, or none.
		"--egress-selector-config-file=" + f.Join(egressFile),
		// Lets a stop end watches in good order; without it, a stop waits a minute for them.
		"--shutdown-watch-termination-grace-period=1s",
		"--profiling=false",
	}, extra...)
}

func controllerManagerArgs(f *Folder) []string {
	return []string{
		"--kubeconfig=" + f.Join(kubeconfigFile(ControllerManager)),
		"--secure-port=0",
		"--leader-elect=false",
		// The first one needs a range of Pod addresses. The others serve the bootstrap of a cluster.
		"--controllers=*,-node-ipam-controller,-bootstrap-signer-controller,-token-cleaner-controller",
		"--service-account-private-key-file=" + f.Join(signingKeyFile),
		"--root-ca-file=" + f.Join(caFile),
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--v=1",
		"--vmodule=deployment_controller=2", // the errors for which it tries again
	}
}

func schedulerArgs(f *Folder, p ports) []string {
	return []string{
		"--kubeconfig=" + f.Join(kubeconfigFile(Scheduler)),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.scheduler),
		"--cert-dir=" + f.Join("scheduler"),
		"--tls-cert-file=" + f.Join(serverCertFile),
		"--tls-private-key-file=" + f.Join(serverKeyFile),
		"--leader-elect=false",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
	}
}

func kubeletArgs(f *Folder, nodes int) []string {
	return []string{
		"--kubeconfig=" + f.Join(kubeconfigFile(Kubelet)),
		"--nodes=" + strconv.Itoa(nodes),
		"--tls-cert-file=" + f.Join(kubeletCertFile),
		"--tls-private-key-file=" + f.Join(kubeletKeyFile),
	}
}

func localURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
