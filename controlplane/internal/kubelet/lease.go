package kubelet

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// leaseSeconds is how long a lease lasts. A real kubelet uses the same value.
const leaseSeconds = 40

// renewLease renews the lease of a node. The node owns the lease.
func renewLease(ctx context.Context, client kubernetes.Interface, node string, now time.Time) error {
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	if err == nil {
		lease.Spec.RenewTime = new(metav1.NewMicroTime(now))
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	}
	if !errors.IsNotFound(err) {
		return err
	}
	owner, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil // somebody deleted the node
	}
	if err != nil {
		return err
	}
	lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      node,
			Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node, UID: owner.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &node,
			LeaseDurationSeconds: new(int32(leaseSeconds)),
			RenewTime:            new(metav1.NewMicroTime(now)),
		},
	}
	_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	return err
}
