package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

func TestNodeIsReadyAndSaysThatItIsSimulated(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	nodes, err := kube.Everywhere[corev1.Node](cluster.Client(t)).List(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	if err := healthy(nodes[0]); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(cluster.Kubectl(t, "", "get", "nodes", "-o", "wide", "--no-headers")) {
		if !strings.Contains(line, "simulated") || !strings.Contains(line, release) || !strings.Contains(line, " Ready ") {
			t.Errorf("kubectl get nodes -o wide: %s", line)
		}
	}
}

// healthy returns an error unless a node is Ready, under no pressure, and accepts Pods.
func healthy(n *corev1.Node) error {
	ready := false
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = c.Status == corev1.ConditionTrue
		} else if c.Status != corev1.ConditionFalse {
			return fmt.Errorf("the node %s has %s: %s", n.Name, c.Type, c.Message)
		}
	}
	if !ready || len(n.Spec.Taints) > 0 || n.Spec.Unschedulable {
		return fmt.Errorf("the node %s is not ready: %+v, taints %v", n.Name, n.Status.Conditions, n.Spec.Taints)
	}
	return nil
}

func TestNodeHeartbeats(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	leases := kube.Namespaced[coordinationv1.Lease](cluster.Client(t), corev1.NamespaceNodeLease)
	node, err := kube.Everywhere[corev1.Node](cluster.Client(t)).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lease := get(t, leases, node[0].Name)
	if h := lease.Spec.HolderIdentity; h == nil || *h != node[0].Name {
		t.Errorf("the lease is held by %v", h)
	}
	if owners := lease.OwnerReferences; len(owners) != 1 || owners[0].UID != node[0].UID {
		t.Errorf("the lease is owned by %v", owners)
	}
	yaretest.WaitFor(t, leases, lease.Name, func(now *coordinationv1.Lease) error {
		if !now.Spec.RenewTime.After(lease.Spec.RenewTime.Time) {
			return errors.New("the lease is not renewed")
		}
		return nil
	})
}
