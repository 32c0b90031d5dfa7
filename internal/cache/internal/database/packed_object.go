package database

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache/internal/codec"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// PackedObject is one version of an object, as small as possible. A PackedObject never changes once a database
// has it, so that readers need no lock. A change, or compression by another codec, makes another
// PackedObject.
type PackedObject struct {
	namespace unique.Handle[string]
	// name is not a part of data: it becomes the key of queues and maps, which must not
	// keep the content from being freed.
	name string
	// version is uid and resourceVersion.
	version   ident.Version
	labelKeys unique.Handle[string]
	// Generation is the generation of the object, or 0.
	Generation int64
	// AnnotationsHash and FinalizersHash are 0 if there are no annotations or finalizers. Hashes can be
	// compared within one process only.
	AnnotationsHash, FinalizersHash uint64
	// owners is nil if there are none. Objects of one owner share it.
	owners *[]kube.Owner
	// decodeErr is not nil once a newer version came that could not be decoded.
	decodeErr *wire.DecodeError
	// codec is what the content is written with. It is nil if the content is as it was sent.
	codec *codec.Codec
	// data are the values of the labels, and behind them the content.
	data string
	// labelValuesLength is the length of the values of the labels in data, in bytes.
	labelValuesLength uint32
	// size is the length of the content before it was compressed, in bytes.
	size uint32
	// IsDeleting is true if the object has a deletionTimestamp.
	IsDeleting bool
}

// Key returns the key of the object.
func (p *PackedObject) Key() kube.Key { return kube.Key{Namespace: p.namespace.Value(), Name: p.name} }

// Labels returns the labels of the object.
func (p *PackedObject) Labels() Labels {
	if p.labelValuesLength == 0 {
		return Labels{}
	}
	return Labels{keys: p.labelKeys, values: p.data[:p.labelValuesLength]}
}

// Owners returns the ownerReferences of the object, in their order. They are shared: do not change
// them.
func (p *PackedObject) Owners() []kube.Owner {
	if p.owners == nil {
		return nil
	}
	return slices.Clip(*p.owners)
}

// isOwnedBy reports whether one of the owners has that UID.
func (p *PackedObject) isOwnedBy(owner types.UID) bool {
	return p.owners != nil && slices.ContainsFunc(*p.owners, func(o kube.Owner) bool { return o.UID == owner })
}

// content returns what is kept of the JSON.
func (p *PackedObject) content() string { return p.data[p.labelValuesLength:] }

// Namespace returns the namespace of the object, or the empty string.
func (p *PackedObject) Namespace() string { return p.namespace.Value() }

// Name returns the name of the object.
func (p *PackedObject) Name() string { return p.name }

// Version returns the uid and the resource version of the object.
func (p *PackedObject) Version() ident.Version { return p.version }

// UID returns the uid of the object.
func (p *PackedObject) UID() types.UID { return p.version.UID() }

// ResourceVersion returns the resource version of the object.
func (p *PackedObject) ResourceVersion() string { return p.version.ResourceVersion() }

// Size returns the length of the JSON before it was compressed, in bytes.
func (p *PackedObject) Size() int { return int(p.size) }

// IsSameObject reports whether both are versions of one object: they have the same uid.
func (p *PackedObject) IsSameObject(o *PackedObject) bool { return p.version.HasSameUID(o.version) }

// isDecodable reports whether no newer version came that could not be read.
func (p *PackedObject) isDecodable() bool { return p.decodeErr == nil }

// hasKey reports whether the packed object has the key k.
func (p *PackedObject) hasKey(k kube.Key) bool {
	return p.name == k.Name && p.namespace.Value() == k.Namespace
}

// AppendJSON appends the JSON of the object to dst. It returns the error of [Writer.MarkUndecodable] if
// a newer version came that could not be read, so that the JSON is outdated.
func (p *PackedObject) AppendJSON(dst []byte) ([]byte, error) {
	if !p.isDecodable() {
		return dst, p.decodeErr
	}
	return p.appendContent(dst)
}

func (p *PackedObject) appendContent(dst []byte) ([]byte, error) {
	if p.codec == nil {
		return append(dst, p.content()...), nil
	}
	return p.codec.Decode(dst, p.content(), int(p.size))
}
