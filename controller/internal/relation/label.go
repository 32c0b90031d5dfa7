package relation

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube/wire"
)

// Label connects a child with the owner whose uid is the value of the label Name of the child.
type Label struct {
	baseRelation
	Name string
}

// WriteVerbs returns the verbs of an apply that may create its object, and of the deletion in the
// cleanup.
func (Label) WriteVerbs() []wire.Verb {
	return []wire.Verb{wire.VerbCreate, wire.VerbPatch, wire.VerbDelete}
}

// IsSlow returns true, because Keys needs the owners, which are known once all streams are synced.
func (Label) IsSlow() bool { return true }

// Keys returns the owner of o.
func (r Label) Keys(_ context.Context, o Object, reconciled ReconciledKind) ([]Key, error) {
	uid := types.UID(o.Record.Labels.Get(r.Name))
	if uid == "" {
		return nil, nil
	}
	k, ok := reconciled.KeyOfUID(o.Cluster, uid)
	if !ok {
		return nil, nil
	}
	return []Key{{Key: k, UID: uid}}, nil
}
