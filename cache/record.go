package cache

import "k8s.io/apimachinery/pkg/types"

// Record is what is kept decoded of every object: enough to match owners, selectors and
// predicates, and to tell versions apart. It is a value; whoever has one can keep it.
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
	// Annotations and Finalizers are hashes, for telling that something has changed. They
	// can be compared within one process only, and are 0 where there are none.
	AnnotationsHash uint64
	FinalizersHash  uint64
	// Owners are the ownerReferences, in their order. They are shared: do not change them.
	Owners []Owner
	// Size is the length of the JSON that the server sent, in bytes.
	Size int
}

// Key is the place of the object in its stream.
func (r Record) Key() Key { return Key{r.Namespace, r.Name} }

// Key is namespace and name: what is unique within a stream.
type Key struct {
	// Namespace is empty for an object outside of namespaces.
	Namespace, Name string
}

// String is the key as kubectl would write it, such as default/web.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Owner is an ownerReference. The version of its kind is left out: an owner is the same in
// all versions.
type Owner struct {
	// Group is empty for the core group.
	Group, Kind, Name string
	UID               types.UID
	// Controller is true for the owner that manages the object; there is at most one.
	Controller bool
}
