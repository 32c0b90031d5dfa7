package cache

import (
	"fmt"
	"slices"
)

// index is one of Store.Index.
type index struct {
	name string
	f    func(Object) []string
	// values are those that f returned for the object in a slot. A slot without any has none.
	values map[uint32][]string
	slots  postings[string]
	// ready is false until all objects are in it that were there before it was.
	ready bool
}

func newIndex(name string, f func(Object) []string) *index {
	return &index{name: name, f: f, values: make(map[uint32][]string), slots: make(postings[string])}
}

// valuesOf calls f. A panic in it is the error.
func (x *index) valuesOf(o Object) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("index %q: %s: panic: %v", x.name, o.Key(), p)
		}
	}()
	values = slices.Clone(x.f(o))
	slices.Sort(values)
	return slices.Compact(values), nil
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
