package relation

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// Reference connects an object with the objects that refer to it, by an index of the reconciled kind.
type Reference struct {
	usual
	By *kube.Index
}

// Check returns an error if the index is missing, or not an index of the reconciled kind.
func (r Reference) Check(watched, reconciled kube.Resource) error {
	if r.By == nil {
		return fmt.Errorf("the index of what refers to %s is nil: make one with kube.NewIndex", watched)
	}
	return r.By.Check(reconciled, kube.Full)
}

// Index returns the index.
func (r Reference) Index() *kube.Index { return r.By }

// IsSlow returns true, because one object may have a great number of referrers.
func (Reference) IsSlow() bool { return true }

// Keys returns the objects that refer to o, either by the name of o from the same namespace, or by
// namespace and name.
func (r Reference) Keys(_ context.Context, o Object, to Kind) ([]Key, error) {
	namespace, name := o.Record.Namespace, o.Record.Name
	switch {
	case namespace == "":
		return to.Referrers(r.By, o.Cluster, "", name), nil
	case to.Resource.ClusterScoped:
		return to.Referrers(r.By, o.Cluster, "", namespace+"/"+name), nil
	default:
		return append(to.Referrers(r.By, o.Cluster, namespace, name), to.Referrers(r.By, o.Cluster, "", namespace+"/"+name)...), nil
	}
}
