package controller

import (
	"bytes"
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// rejectForbiddenOwners returns a handler that refuses writes whose owner references to owner
// Kubernetes forbids. The garbage collector would find no such owner, and delete the child.
func rejectForbiddenOwners(next kube.Handler, owner kube.Ref) kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		if owner.Namespace != "" && owner.UID != "" && r.Verb.IsWrite() && bytes.Contains(r.Body, []byte(owner.UID)) {
			if err := checkOwners(r, owner); err != nil {
				return nil, err
			}
		}
		return next.Do(ctx, r)
	})
}

// checkOwners returns an error if r makes owner an owner of an object that it cannot own: an
// object of a cluster-scoped kind, or one in another namespace.
func checkOwners(r *kube.Request, owner kube.Ref) error {
	if !r.Resource.ClusterScoped && r.Namespace == owner.Namespace {
		return nil
	}
	var child struct {
		Metadata struct {
			OwnerReferences []struct {
				UID string `json:"uid"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if kube.Unmarshal(r.Body, &child) != nil {
		return nil
	}
	ref := r.Ref()
	ref.Name = r.ObjectName()
	for _, reference := range child.Metadata.OwnerReferences {
		if reference.UID != string(owner.UID) {
			continue
		}
		if r.Resource.ClusterScoped {
			return Terminal(fmt.Errorf("%s %s: it is cluster-scoped, so %s cannot own it: use kube.OwnedByLabel and controller.OwnsByLabel instead, and delete it in a cleanup",
				r.Verb, ref, owner))
		}
		return Terminal(fmt.Errorf("%s %s: %s cannot own it across namespaces: use kube.OwnedByLabel and controller.OwnsByLabel instead, and delete it in a cleanup",
			r.Verb, ref, owner))
	}
	return nil
}
