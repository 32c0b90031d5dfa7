package cache

import (
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
)

// index is one of Store.Index.
type index struct {
	of *kube.Index
	// values are those of the object in a slot. A slot without any has none.
	values map[uint32][]string
	slots  postings[string]
	// ready is closed when all objects are in it that were there before it was.
	ready chan struct{}
}

func newIndex(of *kube.Index) *index {
	return &index{of: of, values: make(map[uint32][]string), slots: make(postings[string]), ready: make(chan struct{})}
}

// valuesOf are those of an object, which is JSON.
func (x *index) valuesOf(k kube.Key, object []byte) ([]string, error) {
	values, err := x.of.Values(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values), nil
}

// isReady tells whether it can be used.
func (x *index) isReady() bool {
	select {
	case <-x.ready:
		return true
	default:
		return false
	}
}

// set notes the values of the object in a slot, in place of what was noted.
func (x *index) set(slot uint32, values []string) {
	for _, v := range x.values[slot] {
		x.slots.remove(v, slot)
	}
	for _, v := range values {
		x.slots.add(v, slot)
	}
	if len(values) > 0 {
		x.values[slot] = values
	} else {
		delete(x.values, slot)
	}
}
