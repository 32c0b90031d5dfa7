package database

import (
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/yare-go/yare/internal/cache/internal/slots"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// recordIndex finds packed objects by values that their records have. It keeps hashes of the values, so
// the packed objects that it finds must be checked.
type recordIndex struct {
	slots.Index
	// appendHashes appends the hashes of the values of a packed object.
	appendHashes func(dst []uint64, p *PackedObject) []uint64
	// before and after are buffers of replace.
	before, after []uint64
}

func newRecordIndex(appendHashes func([]uint64, *PackedObject) []uint64) *recordIndex {
	return &recordIndex{Index: slots.NewIndex(), appendHashes: appendHashes}
}

// hashOfValue returns the hash under which an index keeps a value.
func hashOfValue(value string) uint64 { return maphash.String(hashSeed, value) }

// replace puts after into a slot, in place of before. Either may be nil.
func (x *recordIndex) replace(slot uint32, before, after *PackedObject) {
	x.before, x.after = x.before[:0], x.after[:0]
	if before != nil {
		x.before = x.appendHashes(x.before, before)
	}
	if after != nil {
		x.after = x.appendHashes(x.after, after)
	}
	x.Replace(slot, x.before, x.after)
}

// contentIndex is an index of Database.Index: it finds packed objects by values that its author's function
// takes from their contents.
type contentIndex struct {
	slots.Index
	of wire.Index
	// values holds the values of the packed object in each slot. A slot without values is not in it.
	values map[uint32][]string
	// unknown holds the slots of the packed objects for which the function panicked: they may have
	// any value.
	unknown map[uint32]bool
	// hasPanicked is true once the function has panicked.
	hasPanicked bool
	// ready is closed once the index has all packed objects that were in the database before it.
	ready chan struct{}
}

func newContentIndex(of wire.Index) *contentIndex {
	return &contentIndex{
		Index: slots.NewIndex(), of: of, values: make(map[uint32][]string), unknown: make(map[uint32]bool),
		ready: make(chan struct{}),
	}
}

// valuesOf returns the values of an object, which is JSON.
func (x *contentIndex) valuesOf(k kube.Key, object []byte) ([]string, error) {
	values, err := x.of.Values(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values), nil
}

// isReady reports whether the index can be used.
func (x *contentIndex) isReady() bool {
	select {
	case <-x.ready:
		return true
	default:
		return false
	}
}

// appendCandidates appends the slots of the packed objects that have a value, or may have it.
func (x *contentIndex) appendCandidates(dst []uint32, value string) []uint32 {
	for _, slot := range x.Slots(hashOfValue(value)) {
		if slices.Contains(x.values[slot], value) {
			dst = append(dst, slot)
		}
	}
	for slot := range x.unknown {
		dst = append(dst, slot)
	}
	return dst
}

// set replaces the values of the packed object in a slot. If they are unknown, values is empty.
func (x *contentIndex) set(slot uint32, values []string, isUnknown bool) {
	x.Replace(slot, hashesOf(x.values[slot]), hashesOf(values))
	if len(values) > 0 {
		x.values[slot] = values
	} else {
		delete(x.values, slot)
	}
	if isUnknown {
		x.unknown[slot], x.hasPanicked = true, true
	} else {
		delete(x.unknown, slot)
	}
}

func hashesOf(values []string) []uint64 {
	var hashes []uint64
	for _, v := range values {
		hashes = append(hashes, hashOfValue(v))
	}
	return hashes
}
