package adoption

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// RefuseForbiddenOwners returns a handler that refuses forbidden owner references to owner: from
// another namespace, or from a cluster-scoped object. The garbage collector would find no such owner,
// and delete the child. markTerminal marks an error that no retry cures.
func RefuseForbiddenOwners(next wire.Handler, owner wire.Ref, markTerminal func(error) error) wire.Handler {
	return &ownerCheck{next: next, owner: owner, markTerminal: markTerminal}
}

// ownerCheck refuses the forbidden owner references of one reconcile.
type ownerCheck struct {
	next         wire.Handler
	owner        wire.Ref
	markTerminal func(error) error
}

// Do serves one request.
func (h *ownerCheck) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if h.owner.Namespace != "" && h.owner.UID != "" && r.Verb.IsWrite() && bytes.Contains(r.Body, []byte(h.owner.UID)) {
		if err := checkOwnerReferences(r, h.owner); err != nil {
			return nil, h.markTerminal(err)
		}
	}
	return h.next.Do(ctx, r)
}

// checkOwnerReferences returns an error if r adds a forbidden owner reference to owner: in an object of a
// cluster-scoped kind, or in an object of another namespace.
func checkOwnerReferences(r *wire.Request, owner wire.Ref) error {
	if !r.Resource.ClusterScoped && r.Namespace == owner.Namespace {
		return nil
	}
	var child metav1.PartialObjectMetadata
	if kube.Unmarshal(r.Body, &child) != nil {
		return nil
	}
	ref := r.Ref()
	ref.Name = r.ObjectName()
	for _, reference := range child.OwnerReferences {
		if reference.UID != owner.UID {
			continue
		}
		if r.Resource.ClusterScoped {
			return fmt.Errorf("%s %s: it is cluster-scoped, so %s cannot own it: use kube.OwnedByLabel and controller.OwnsByLabel instead, and delete it in a cleanup",
				r.Verb, ref, owner)
		}
		return fmt.Errorf("%s %s: %s cannot own it across namespaces: use kube.OwnedByLabel and controller.OwnsByLabel instead, and delete it in a cleanup",
			r.Verb, ref, owner)
	}
	return nil
}
