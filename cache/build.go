package cache

import (
	"slices"
	"unique"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/watch"
)

// builder makes entries, and sees to it that they share what they have in common. It is the
// writer's own.
type builder struct {
	metadata metadata
	// namespace and labelKeys are the last ones, which are mostly the next ones too.
	namespace namedHandle
	labelKeys namedHandle
	buffer    []byte
}

// namedHandle is a handle and what it stands for.
type namedHandle struct {
	text   string
	handle unique.Handle[string]
}

// of is the handle of text.
func (h *namedHandle) of(text []byte) unique.Handle[string] {
	if h.handle == (unique.Handle[string]{}) || h.text != string(text) {
		h.text = string(text)
		h.handle = unique.Make(h.text)
	}
	return h.handle
}

// entry makes an entry of the object of c. An error is about the parts of the metadata that could
// not be read; the entry is without them.
func (s *Store) entry(c watch.Change) (*entry, error) {
	object := c.Object
	b := &s.builder
	m := &b.metadata
	err := m.read(object)
	e := &entry{
		// The names are those that the stream knows the object by.
		namespace: b.namespace.of([]byte(c.Key.Namespace)), name: c.Key.Name, version: ident.NewVersion(c.UID, c.ResourceVersion),
		generation: m.generation, deleting: m.deleting,
		annotations: m.annotations, finalizers: m.finalizers,
		size: uint32(len(object)), values: uint32(len(m.labelValues)),
	}
	if len(m.labelKeys) > 0 {
		e.labelKeys = b.labelKeys.of(m.labelKeys)
	}
	if len(m.owners) > 0 {
		e.owners = s.sharedOwners(m)
	}
	b.buffer = append(b.buffer[:0], m.labelValues...)
	b.buffer, e.coding = s.compressor.append(b.buffer, object)
	e.data = string(b.buffer)
	if cap(b.buffer) > largeBuffer {
		b.buffer = nil
	}
	return e, err
}

// largeBuffer is how large a buffer may be to be kept, in bytes.
const largeBuffer = 64 << 10

// sharedOwners are the owners that were read: those of a neighbour, if it has the same.
func (s *Store) sharedOwners(m *metadata) *[]Owner {
	u, _ := ident.NewUID(string(m.owners[0].uid))
	if slots := s.owners[u]; len(slots) > 0 {
		if shared := s.slots[slots[0]].owners; m.sameOwners(*shared) {
			return shared
		}
	}
	owners := slices.Clip(m.ownerList())
	return &owners
}
