package controller

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// Owns runs the reconcile of the owner when a C changes that the owner controls: see
// [kube.OwnedBy].
func Owns[C any, P kube.ObjectOf[C]](options ...SourceOption) Option {
	return newWatchOption[C, P](options, func(kube.API[C]) (relation, error) { return ownerRelation{}, nil })
}

// ownerRelation connects a child with its controlling owner.
type ownerRelation struct{}

func (ownerRelation) check(watched, reconciled kube.Resource) error {
	if watched.ClusterScoped && !reconciled.ClusterScoped {
		return fmt.Errorf("%s live in namespaces and %s outside of them, so one cannot own the other: label them, and write controller.Watches",
			reconciled, watched)
	}
	return nil
}

func (ownerRelation) index() *kube.Index { return nil }

func (ownerRelation) isSlow() bool { return false }

func (ownerRelation) relatedKeys(_ context.Context, o watchedObject, to reconciledKind) (keys []relatedKey, err error) {
	for _, owner := range o.record.Owners {
		if !owner.Controller || owner.Group != to.resource.Group || owner.Kind != to.resource.Kind {
			continue
		}
		t := relatedKey{Key: kube.Key{Cluster: o.cluster, Name: owner.Name}, uid: string(owner.UID)}
		if !to.resource.ClusterScoped {
			t.Namespace = o.record.Namespace
		}
		keys = append(keys, t)
	}
	return keys, nil
}
