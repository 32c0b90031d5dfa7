package cache

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// Record holds the fields of an object that are kept decoded: enough to match owners, selectors
// and predicates, and to distinguish versions. It is a value, and may be kept.
type Record struct {
	// Namespace is empty for an object outside of namespaces.
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Generation counts the changes of the desired state, for the kinds that have it.
	Generation int64
	// Deleting is true once the object has a deletionTimestamp.
	Deleting bool
	Labels   Labels
	// AnnotationsHash and FinalizersHash differ if the annotations or finalizers do. They can be
	// compared within one process only, and are 0 if there are none.
	AnnotationsHash uint64
	FinalizersHash  uint64
	// Owners are the ownerReferences, in their order. They are shared: do not change them.
	Owners []Owner
	// Size is the length of the JSON that the server sent, in bytes.
	Size int
}

// Key returns the key of the object in its stream, without the cluster.
func (r Record) Key() kube.Key { return kube.Key{Namespace: r.Namespace, Name: r.Name} }

// Owner is an owner reference. It has no version, because an owner is the same object in all
// versions of its kind.
type Owner struct {
	// Group is empty for the core group.
	Group, Kind, Name string
	UID               types.UID
	// Controller is true for the owner that manages the object; there is at most one.
	Controller bool
}
