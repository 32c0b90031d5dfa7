package cache

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// entry is one version of an object, as small as possible. An entry never changes once a store
// has it, so that readers need no lock. A change, or compression by another codec, makes another
// entry.
type entry struct {
	namespace unique.Handle[string]
	// name is not a part of data: it becomes the key of queues and maps, which must not
	// keep the content from being freed.
	name string
	// version is uid and resourceVersion.
	version    ident.Version
	generation int64
	labelKeys  unique.Handle[string]
	// annotations and finalizers are hashes.
	annotations, finalizers uint64
	// owners is nil if there are none. Objects of one owner share it.
	owners *[]Owner
	// unreadable is not nil once a newer version came that could not be read.
	unreadable *kube.DecodeError
	// codec is what the content is written with. It is nil if the content is as it was sent.
	codec *codec.Codec
	// data are the values of the labels, and behind them the content.
	data string
	// values is the length of the former, in bytes.
	values uint32
	// size is the length of the content before it was compressed, in bytes.
	size     uint32
	deleting bool
}

// key returns the key of the object.
func (e *entry) key() kube.Key { return kube.Key{Namespace: e.namespace.Value(), Name: e.name} }

// labels returns the labels of the object.
func (e *entry) labels() Labels {
	if e.values == 0 {
		return Labels{}
	}
	return Labels{keys: e.labelKeys, values: e.data[:e.values]}
}

// ownerList returns the owners of the object.
func (e *entry) ownerList() []Owner {
	if e.owners == nil {
		return nil
	}
	return slices.Clip(*e.owners)
}

// isOwnedBy reports whether one of the owners has that UID.
func (e *entry) isOwnedBy(owner types.UID) bool {
	if e.owners != nil {
		for _, o := range *e.owners {
			if o.UID == owner {
				return true
			}
		}
	}
	return false
}

// content returns what is kept of the JSON.
func (e *entry) content() string { return e.data[e.values:] }

// record returns the record of the object.
func (e *entry) record() Record {
	return Record{
		Namespace: e.namespace.Value(), Name: e.name, UID: e.version.UID(), ResourceVersion: e.version.ResourceVersion(),
		Generation: e.generation, Deleting: e.deleting, Labels: e.labels(),
		AnnotationsHash: e.annotations, FinalizersHash: e.finalizers, Owners: e.ownerList(), Size: int(e.size),
	}
}

// isReadable reports whether no newer version came that could not be read.
func (e *entry) isReadable() bool { return e.unreadable == nil }

// is reports whether the entry is that of k.
func (e *entry) is(k kube.Key) bool { return e.name == k.Name && e.namespace.Value() == k.Namespace }

// append appends the JSON to dst.
func (e *entry) append(dst []byte) ([]byte, error) {
	if !e.isReadable() {
		return dst, e.unreadable
	}
	return e.appendContent(dst)
}

func (e *entry) appendContent(dst []byte) ([]byte, error) {
	if e.codec == nil {
		return append(dst, e.content()...), nil
	}
	return e.codec.Decode(dst, e.content(), int(e.size))
}
