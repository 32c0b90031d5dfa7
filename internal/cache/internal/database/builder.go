package database

import (
	"fmt"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

// builder makes packed objects that share what they have in common.
type builder struct {
	metadata metadata
	// namespace and labelKeys hold the last handles, which mostly fit the next packed object too.
	namespace namedHandle
	labelKeys namedHandle
}

// namedHandle is a handle and the text that it stands for.
type namedHandle struct {
	text   string
	handle unique.Handle[string]
}

// handleOf returns the handle of text.
func (h *namedHandle) handleOf(text []byte) unique.Handle[string] {
	if h.handle == (unique.Handle[string]{}) || h.text != string(text) {
		h.text = string(text)
		h.handle = unique.Make(h.text)
	}
	return h.handle
}

// PackMetadata packs the metadata of an object, which is JSON. The packed object has no content.
func PackMetadata(object []byte) (*PackedObject, error) {
	var b builder
	m := &b.metadata
	if err := m.read(object); err != nil {
		return nil, fmt.Errorf("read the metadata of an object: %w", err)
	}
	p := b.build(m.namespace, string(m.name), ident.NewVersion(types.UID(m.uid), string(m.version)), len(object))
	p.data = string(m.labelValues)
	if owners := m.ownerList(); owners != nil {
		p.owners = &owners
	}
	return p, nil
}

// build returns a packed object with the metadata that were read, without data and owners.
func (b *builder) build(namespace []byte, name string, version ident.Version, size int) *PackedObject {
	m := &b.metadata
	p := &PackedObject{
		namespace: b.namespace.handleOf(namespace), name: name, version: version, Generation: m.generation,
		IsDeleting:      m.isDeleting,
		AnnotationsHash: m.annotationsHash, FinalizersHash: m.finalizersHash, labelValuesLength: uint32(len(m.labelValues)),
		size: uint32(size),
	}
	if len(m.labelKeys) > 0 {
		p.labelKeys = b.labelKeys.handleOf(m.labelKeys)
	}
	return p
}
