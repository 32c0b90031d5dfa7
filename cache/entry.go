package cache

import (
	"slices"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// entry is one version of an object, as small as can be. It is never changed once a store
// has it, so that readers need no lock: what changes, or is compressed anew, is another
// entry.
type entry struct {
	namespace unique.Handle[string]
	// name is not a part of data: it becomes the key of queues and maps, which must not
	// keep the content from being freed.
	name string
	uid  uid
	// version is the resourceVersion.
	version    uint64
	generation int64
	labelKeys  unique.Handle[string]
	// annotations and finalizers are hashes.
	annotations, finalizers uint64
	// owners is nil if there are none. Objects of one owner share it.
	owners *[]Owner
	// odd is nil for nearly all objects.
	odd *odd
	// coding is how the content is written, nil: as it was sent.
	coding *coding
	// data are the values of the labels, and behind them the content.
	data string
	// values is the length of the former, in bytes.
	values uint32
	// size is the length of the content before it was compressed, in bytes.
	size     uint32
	deleting bool
}

// odd is what an entry has no place for.
type odd struct {
	// uid and version are those that cannot be told from their short form, or empty.
	uid, version string
	// err is set once a newer version came that could not be read.
	err error
}

// key is the place of the object.
func (e *entry) key() Key { return Key{e.namespace.Value(), e.name} }

// labels are those of the object.
func (e *entry) labels() Labels {
	if e.values == 0 {
		return Labels{}
	}
	return Labels{keys: e.labelKeys, values: e.data[:e.values]}
}

// ownerList are the owners of the object.
func (e *entry) ownerList() []Owner {
	if e.owners == nil {
		return nil
	}
	return slices.Clip(*e.owners)
}

// ownedBy tells whether one of the owners has that uid.
func (e *entry) ownedBy(owner types.UID) bool {
	if e.owners != nil {
		for _, o := range *e.owners {
			if o.UID == owner {
				return true
			}
		}
	}
	return false
}

// content is what is kept of the JSON.
func (e *entry) content() string { return e.data[e.values:] }

// record is the entry as others see it.
func (e *entry) record() Record {
	r := Record{
		Namespace: e.namespace.Value(), Name: e.name,
		Generation: e.generation, Deleting: e.deleting, Labels: e.labels(),
		Annotations: e.annotations, Finalizers: e.finalizers, Owners: e.ownerList(), Size: int(e.size),
	}
	if e.odd != nil && e.odd.uid != "" {
		r.UID = types.UID(e.odd.uid)
	} else if e.uid != (uid{}) {
		r.UID = e.uid.String()
	}
	if e.odd != nil && e.odd.version != "" {
		r.ResourceVersion = e.odd.version
	} else if e.version != 0 {
		r.ResourceVersion = strconv.FormatUint(e.version, 10)
	}
	return r
}

// readable is false once a newer version came that could not be read.
func (e *entry) readable() bool { return e.odd == nil || e.odd.err == nil }

// append appends the JSON to dst.
func (e *entry) append(dst []byte) ([]byte, error) {
	if !e.readable() {
		return dst, e.odd.err
	}
	return e.appendContent(dst)
}

func (e *entry) appendContent(dst []byte) ([]byte, error) {
	if e.coding == nil {
		return append(dst, e.content()...), nil
	}
	return e.coding.decode(dst, e.content(), int(e.size))
}

// sameVersion tells whether both are the same version of the same object.
func (e *entry) sameVersion(o *entry) bool {
	if e.uid != o.uid || e.version != o.version {
		return false
	}
	var a, b odd
	if e.odd != nil {
		a = *e.odd
	}
	if o.odd != nil {
		b = *o.odd
	}
	return a.uid == b.uid && a.version == b.version
}

// sameObject tells whether both are versions of the same object.
func (e *entry) sameObject(o *entry) bool {
	a, b := "", ""
	if e.odd != nil {
		a = e.odd.uid
	}
	if o.odd != nil {
		b = o.odd.uid
	}
	return e.uid == o.uid && a == b
}
