package cache

import (
	"slices"
	"unique"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/watch"
)

// builder holds what a [Writer] needs to build entries that share what they have in common.
type builder struct {
	metadata metadata
	// namespace and labelKeys are the last ones, which are mostly the next ones too.
	namespace namedHandle
	labelKeys namedHandle
	buffer    []byte
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

// build builds an entry of the object of c. err is about metadata that could not be read; the
// entry is without them.
func (w *Writer) build(c watch.Change) (e *entry, err error) {
	object := c.Object
	b := &w.builder
	m := &b.metadata
	err = m.read(object)
	e = &entry{
		// The names are those that the stream knows the object by.
		namespace: b.namespace.handleOf([]byte(c.Key.Namespace)), name: c.Key.Name, version: ident.NewVersion(c.UID, c.ResourceVersion),
		generation: m.generation, deleting: m.deleting,
		annotations: m.annotations, finalizers: m.finalizers,
		size: uint32(len(object)), values: uint32(len(m.labelValues)),
	}
	if len(m.labelKeys) > 0 {
		e.labelKeys = b.labelKeys.handleOf(m.labelKeys)
	}
	if len(m.owners) > 0 {
		e.owners = w.sharedOwners(m)
	}
	b.buffer = append(b.buffer[:0], m.labelValues...)
	b.buffer, e.codec = w.append(b.buffer, object)
	e.data = string(b.buffer)
	if cap(b.buffer) > largeBuffer {
		b.buffer = nil
	}
	return e, err
}

// largeBuffer is how large a buffer may be to be kept, in bytes.
const largeBuffer = 64 << 10

// sharedOwners returns the owners that were read: those of a neighbour, if it has the same.
func (w *Writer) sharedOwners(m *metadata) *[]Owner {
	u, _ := ident.NewUID(string(m.owners[0].uid))
	if found := w.store.owners.Slots(u); len(found) > 0 {
		if shared := w.store.slots[found[0]].owners; m.isSameOwners(*shared) {
			return shared
		}
	}
	owners := slices.Clip(m.ownerList())
	return &owners
}
