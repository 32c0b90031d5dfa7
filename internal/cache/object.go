package cache

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache/internal/database"
	"github.com/yare-go/yare/kube"
)

var errNoContent = errors.New("the cache.Object is the zero value")

// Labels are the labels of an object.
type Labels = database.Labels

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
	Owners []kube.Owner
	// Size is the length of the JSON that the server sent, in bytes.
	Size int
}

// Key returns the key of the object in its stream, without the cluster.
func (r Record) Key() kube.Key { return kube.Key{Namespace: r.Namespace, Name: r.Name} }

// recordOf returns the record of a packed object.
func recordOf(p *database.PackedObject) Record { return recordOfObject(p, p.UID()) }

// recordOfObject returns the record of a packed object with a uid. A packed object makes the text of the uid anew, so a
// caller that has the text passes it.
func recordOfObject(p *database.PackedObject, uid types.UID) Record {
	return Record{
		Namespace: p.Namespace(), Name: p.Name(), UID: uid, ResourceVersion: p.ResourceVersion(),
		Generation: p.Generation, Deleting: p.IsDeleting, Labels: p.Labels(),
		AnnotationsHash: p.AnnotationsHash, FinalizersHash: p.FinalizersHash, Owners: p.Owners(), Size: p.Size(),
	}
}

// Object is one version of an object: its record, and its content on demand. It does not change
// when the store does.
type Object struct {
	Record
	packed *database.PackedObject
}

// objectOf returns the Object of a packed object. It returns the zero Object if p is nil.
func objectOf(p *database.PackedObject) Object {
	if p == nil {
		return Object{}
	}
	return Object{Record: recordOf(p), packed: p}
}

// Bytes returns the JSON that the server sent, in memory of the caller's own. Each call
// decompresses it. Bytes may be called concurrently. It returns an error if the Object is the
// zero value, and a [*wire.DecodeError] if a newer version came that could not be read.
func (o Object) Bytes() ([]byte, error) { return o.AppendBytes(nil) }

// AppendBytes appends to dst what [Object.Bytes] returns.
func (o Object) AppendBytes(dst []byte) ([]byte, error) {
	if o.packed == nil {
		return dst, errNoContent
	}
	return o.packed.AppendJSON(dst)
}
