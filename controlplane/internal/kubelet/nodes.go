package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"

	"github.com/yare-go/yare/controlplane/internal/kubelet/lifecycle"
)

const (
	// heartbeat is how often leases are renewed and statuses looked after, as in a real
	// kubelet.
	heartbeat = 10 * time.Second
	// registerRetry is the wait after a registration that failed.
	registerRetry = 100 * time.Millisecond
)

// nodes registers the simulated nodes and keeps them alive.
type nodes struct {
	client kubernetes.Interface
	count  int
	// port is the port at which the API server asks for logs.
	port int
}

func newNodes(client kubernetes.Interface, count, port int) *nodes {
	return &nodes{client: client, count: count, port: port}
}

func nodeName(node int) string { return fmt.Sprintf("yare-%d", node) }

// names returns the names of the nodes, by their number.
func (n *nodes) names() []string {
	names := make([]string, n.count)
	for i := range names {
		names[i] = nodeName(i)
	}
	return names
}

// register makes the nodes, or takes over the nodes that exist, until all are Ready.
func (n *nodes) register(ctx context.Context) error {
	return n.forEach(ctx, func(ctx context.Context, node int) error {
		for {
			err := n.registerOne(ctx, node)
			if err == nil {
				return nil
			}
			slog.Warn("registering a node failed; trying again", "node", nodeName(node), "error", err)
			select {
			case <-ctx.Done():
				return fmt.Errorf("register node %s: %w", nodeName(node), ctx.Err())
			case <-time.After(registerRetry):
			}
		}
	})
}

// forEach calls action for all nodes at the same time, and returns the first error.
func (n *nodes) forEach(ctx context.Context, action func(context.Context, int) error) error {
	var group sync.WaitGroup
	failed := make(chan error, n.count)
	for node := range n.count {
		group.Go(func() {
			if err := action(ctx, node); err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

func (n *nodes) registerOne(ctx context.Context, node int) error {
	// The server keeps the node that is created as a whole, its status included.
	_, err := n.client.CoreV1().Nodes().Create(ctx, n.object(node, time.Now()), metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return n.refresh(ctx, node)
	}
	return err
}

// refresh brings the status of a node up to date: the node lifecycle controller declares a silent node dead.
// Only the node itself can report that it lives. A node that somebody deleted stays deleted.
func (n *nodes) refresh(ctx context.Context, node int) error {
	current, err := n.client.CoreV1().Nodes().Get(ctx, nodeName(node), metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	status := n.status(node, now)
	if !isOutdated(current.Status, status, now) {
		return nil
	}
	keepTransitions(current.Status.Conditions, status.Conditions)
	current.Status = status
	_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, current, metav1.UpdateOptions{})
	return err
}

// keepAlive renews leases and statuses until the context ends.
func (n *nodes) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		_ = n.forEach(ctx, func(ctx context.Context, node int) error {
			ctx, cancel := context.WithTimeout(ctx, heartbeat)
			defer cancel()
			if err := renewLease(ctx, n.client, nodeName(node), time.Now()); err != nil && ctx.Err() == nil {
				slog.Warn("renewing a lease failed", "node", nodeName(node), "error", err)
			}
			if err := n.refresh(ctx, node); err != nil && ctx.Err() == nil {
				slog.Warn("updating the status of a node failed", "node", nodeName(node), "error", err)
			}
			return nil
		})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// object returns a node as it is registered.
func (n *nodes) object(node int, now time.Time) *corev1.Node {
	name := nodeName(node)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
			Annotations: map[string]string{
				lifecycle.Prefix + "node": "its Pods are simulated: no container runs",
			},
		},
		Spec: corev1.NodeSpec{
			PodCIDR: podCIDR(node), PodCIDRs: []string{podCIDR(node)}, ProviderID: lifecycle.Scheme + name,
		},
		Status: n.status(node, now),
	}
}

// status returns the status of a healthy node.
func (n *nodes) status(node int, now time.Time) corev1.NodeStatus {
	name, release := nodeName(node), version.Get().GitVersion
	// Nothing is used up, so there is plenty.
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("2Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Ti"),
		corev1.ResourcePods:             resource.MustParse("5000"),
	}
	condition := func(
		kind corev1.NodeConditionType, is corev1.ConditionStatus, reason, message string,
	) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: is, Reason: reason, Message: message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}
	}
	return corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "simulated"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "simulated"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "simulated"),
			condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "simulated kubelet is ready"),
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: nodeIP(node)},
			{Type: corev1.NodeHostName, Address: name},
			// Where the API server asks for logs.
			{Type: corev1.NodeInternalDNS, Address: "localhost"},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(n.port)}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID:               "simulated-" + name,
			SystemUUID:              "simulated-" + name,
			BootID:                  "simulated-" + name,
			KernelVersion:           "simulated",
			OSImage:                 "simulated node",
			ContainerRuntimeVersion: lifecycle.Scheme + release,
			KubeletVersion:          release,
			KubeProxyVersion:        release,
			OperatingSystem:         "linux",
			Architecture:            runtime.GOARCH,
		},
	}
}

// isOutdated reports whether a node's status must be written again: it has other values,
// or is so old that the node would be taken for dead.
func isOutdated(current, wanted corev1.NodeStatus, now time.Time) bool {
	const statusLifetime = 5 * time.Minute
	if current.DaemonEndpoints != wanted.DaemonEndpoints ||
		current.NodeInfo.KubeletVersion != wanted.NodeInfo.KubeletVersion {
		return true
	}
	is := map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range current.Conditions {
		is[c.Type] = c
	}
	for _, c := range wanted.Conditions {
		old, found := is[c.Type]
		if !found || old.Status != c.Status || now.Sub(old.LastHeartbeatTime.Time) > statusLifetime {
			return true
		}
	}
	return false
}

// keepTransitions gives conditions that did not change the time of their last change.
func keepTransitions(current, wanted []corev1.NodeCondition) {
	for i := range wanted {
		for _, old := range current {
			if old.Type == wanted[i].Type && old.Status == wanted[i].Status {
				wanted[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
}
