package relation

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// Owner connects a child with its controlling owner, or with all of its owners if IsAny is true.
type Owner struct {
	usual
	IsAny bool
}

// Check returns an error if the reconciled kind cannot own the watched kind.
func (Owner) Check(watched, reconciled kube.Resource) error {
	if watched.ClusterScoped && !reconciled.ClusterScoped {
		return fmt.Errorf("%s live in namespaces and %s outside of them, so one cannot own the other: label them, and write controller.OwnsByLabel",
			reconciled, watched)
	}
	return nil
}

// WriteVerbs returns the verbs of an apply that may create its object.
func (Owner) WriteVerbs() []kube.Verb { return []kube.Verb{kube.VerbCreate, kube.VerbPatch} }

// Keys returns the owners of o.
func (r Owner) Keys(_ context.Context, o Object, to Kind) (keys []Key, err error) {
	for _, owner := range o.Record.Owners {
		if !owner.Controller && !r.IsAny || owner.Group != to.Resource.Group || owner.Kind != to.Resource.Kind {
			continue
		}
		k := Key{Key: kube.Key{Cluster: o.Cluster, Name: owner.Name}, UID: owner.UID}
		if !to.Resource.ClusterScoped {
			k.Namespace = o.Record.Namespace
		}
		keys = append(keys, k)
	}
	return keys, nil
}
