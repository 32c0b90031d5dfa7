package slots

import "slices"

// Index finds the slots that have a value. A slot may have several values.
type Index[V comparable] struct {
	// postings are the slots of each value, in ascending order. No value has none.
	postings map[V][]uint32
}

// NewIndex returns an empty Index.
func NewIndex[V comparable]() Index[V] { return Index[V]{postings: make(map[V][]uint32)} }

// Slots returns the slots that have a value, in ascending order. They are valid until the next
// Replace.
func (x *Index[V]) Slots(value V) []uint32 { return x.postings[value] }

// Replace gives a slot the values after, in place of the values before. Both may be empty, and
// may have a value twice.
func (x *Index[V]) Replace(slot uint32, before, after []V) {
	for _, v := range before {
		if !slices.Contains(after, v) {
			x.remove(v, slot)
		}
	}
	for _, v := range after {
		if !slices.Contains(before, v) {
			x.add(v, slot)
		}
	}
}

func (x *Index[V]) add(v V, slot uint32) {
	posting := x.postings[v]
	// Mostly the slot is a new one, and comes last.
	if n := len(posting); n == 0 || posting[n-1] < slot {
		x.postings[v] = append(posting, slot)
	} else if i, has := slices.BinarySearch(posting, slot); !has {
		x.postings[v] = slices.Insert(posting, i, slot)
	}
}

func (x *Index[V]) remove(v V, slot uint32) {
	posting := x.postings[v]
	i, has := slices.BinarySearch(posting, slot)
	switch {
	case !has:
	case len(posting) == 1:
		delete(x.postings, v)
	default:
		x.postings[v] = slices.Delete(posting, i, i+1)
	}
}
