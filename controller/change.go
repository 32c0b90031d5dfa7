package controller

import (
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

// Change describes a change of a watched object to a [Predicate].
type Change struct {
	Type ChangeType
	// Before is the state that the program knew before the change. It is set if Type is Modified or Deleted.
	Before Record
	// After is the state after the change. It is set if Type is Added or Modified.
	After Record
	// Initial is true for an object that existed before the program watched its kind.
	Initial bool
	// Missed is true if the watch has missed states of the object between Before and After, and the program
	// has read or written one of them. What differs between Before and After is then not all that matters.
	Missed bool

	// published is the change as the cache published it. It is nil in a Change that a test makes.
	published *cache.Change
}

// ChangeType is the type of a [Change].
type ChangeType int

const (
	// Added means that the program did not know the object.
	Added = ChangeType(cache.Added)
	// Modified means that the program knew another version of the same object. The same name under another
	// UID is a Deleted and an Added.
	Modified = ChangeType(cache.Modified)
	// Deleted means that the object is gone, or no longer matches the selectors of its source.
	Deleted = ChangeType(cache.Deleted)
)

// String returns the name of the type.
func (t ChangeType) String() string {
	switch t {
	case Added:
		return "Added"
	case Modified:
		return "Modified"
	case Deleted:
		return "Deleted"
	default:
		return "ChangeType(" + strconv.Itoa(int(t)) + ")"
	}
}

// Record returns After, or Before for a deletion.
func (c Change) Record() Record {
	if c.Type == Deleted {
		return c.Before
	}
	return c.After
}

// Record holds the metadata of an object that predicates need. The program keeps these fields decoded, so
// a predicate on them costs nearly nothing. A predicate on other fields decodes the object: see [Changed].
type Record struct {
	// Namespace is empty for an object outside of namespaces.
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Generation counts the changes of the desired state, for the kinds that have it.
	Generation int64
	// Deleting is true once the object has a deletionTimestamp.
	Deleting bool
	// Labels are the labels of the object. A selector of package labels of apimachinery matches them. The
	// Labels of a record that is not set are empty, and not nil.
	Labels labels.Labels
	// AnnotationsHash and FinalizersHash differ if the annotations or finalizers differ. They can be
	// compared within one process only, and are 0 for an object without annotations or finalizers.
	AnnotationsHash uint64
	FinalizersHash  uint64
	// Owners are the ownerReferences, in their order. They are shared: do not change them.
	Owners []kube.Owner
	// Size is the length of the JSON that the server sent, in bytes.
	Size int
}

// Key returns the key of the object.
func (r Record) Key() kube.Key { return kube.Key{Namespace: r.Namespace, Name: r.Name} }

// newChange returns a change of the cache as predicates receive it.
func newChange(published *cache.Change) Change {
	return Change{
		Type: ChangeType(published.Type), Before: newRecord(&published.Before), After: newRecord(&published.After),
		Initial: published.Initial, Missed: published.Missed, published: published,
	}
}

func newRecord(r *cache.Record) Record {
	return Record{
		Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion,
		Generation: r.Generation, Deleting: r.Deleting, Labels: &r.Labels,
		AnnotationsHash: r.AnnotationsHash, FinalizersHash: r.FinalizersHash, Owners: r.Owners, Size: r.Size,
	}
}
