package slots

import "slices"

// Index finds the slots that have a value. A slot may have several values. The values are hashes,
// so that an Index of any values takes little memory and little code.
type Index struct {
	// postings holds the slots of each value, in ascending order. A value without slots is not in it.
	postings map[uint64][]uint32
}

// NewIndex returns an empty Index.
func NewIndex() Index { return Index{postings: make(map[uint64][]uint32)} }

// Slots returns the slots that have a value, in ascending order. They are valid until the next
// Replace.
func (x *Index) Slots(value uint64) []uint32 { return x.postings[value] }

// Replace gives a slot the values after, in place of the values before. Both may be empty, and
// may have a value twice.
func (x *Index) Replace(slot uint32, before, after []uint64) {
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

func (x *Index) add(v uint64, slot uint32) {
	posting := x.postings[v]
	// Mostly the slot is a new one, and comes last.
	if n := len(posting); n == 0 || posting[n-1] < slot {
		x.postings[v] = append(posting, slot)
	} else if i, has := slices.BinarySearch(posting, slot); !has {
		x.postings[v] = slices.Insert(posting, i, slot)
	}
}

func (x *Index) remove(v uint64, slot uint32) {
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
