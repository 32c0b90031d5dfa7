package cache

import (
	"fmt"
	"maps"
	"slices"

	"github.com/yare-go/yare/cache/internal/slots"
	"github.com/yare-go/yare/kube"
)

// recordIndex finds entries by values that their records have.
type recordIndex[V comparable] struct {
	slots.Index[V]
	// values appends those of an entry.
	values func(dst []V, e *entry) []V
	// before and after are buffers of replace.
	before, after []V
}

func newRecordIndex[V comparable](values func([]V, *entry) []V) *recordIndex[V] {
	return &recordIndex[V]{Index: slots.NewIndex[V](), values: values}
}

// replace puts after into a slot, in place of before. Either may be nil.
func (x *recordIndex[V]) replace(slot uint32, before, after *entry) {
	x.before, x.after = x.before[:0], x.after[:0]
	if before != nil {
		x.before = x.values(x.before, before)
	}
	if after != nil {
		x.after = x.values(x.after, after)
	}
	x.Replace(slot, x.before, x.after)
}

// replacer is a recordIndex of any type.
type replacer interface {
	replace(slot uint32, before, after *entry)
}

// contentIndex is one of Store.Index: it finds entries by values that its author's function
// takes from their contents.
type contentIndex struct {
	slots.Index[string]
	of *kube.Index
	// values are those of the entry in a slot. A slot without any has none.
	values map[uint32][]string
	// unknown holds the slots of the entries for which the function panicked: they may have
	// any value.
	unknown map[uint32]bool
	// hasPanicked is true once the function has panicked.
	hasPanicked bool
	// ready is closed once all entries are in the index that precede it.
	ready chan struct{}
}

func newContentIndex(of *kube.Index) *contentIndex {
	return &contentIndex{
		Index: slots.NewIndex[string](), of: of, values: make(map[uint32][]string), unknown: make(map[uint32]bool),
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

// candidates returns the slots of the entries that have a value, or may have it.
func (x *contentIndex) candidates(value string) []uint32 {
	found := x.Slots(value)
	if len(x.unknown) == 0 {
		return found
	}
	return slices.AppendSeq(slices.Clone(found), maps.Keys(x.unknown))
}

// set replaces the values of the entry in a slot. If they are unknown, values is empty.
func (x *contentIndex) set(slot uint32, values []string, unknown bool) {
	x.Replace(slot, x.values[slot], values)
	if len(values) > 0 {
		x.values[slot] = values
	} else {
		delete(x.values, slot)
	}
	if unknown {
		x.unknown[slot], x.hasPanicked = true, true
	} else {
		delete(x.unknown, slot)
	}
}
