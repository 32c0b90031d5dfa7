package cache

import "slices"

// postings say which slots have a value, in ascending order.
type postings[V comparable] map[V][]uint32

func (p postings[V]) add(v V, slot uint32) {
	slots := p[v]
	// Mostly the slot is a new one, and comes last.
	if n := len(slots); n == 0 || slots[n-1] < slot {
		p[v] = append(slots, slot)
	} else if i, there := slices.BinarySearch(slots, slot); !there {
		p[v] = slices.Insert(slots, i, slot)
	}
}

func (p postings[V]) remove(v V, slot uint32) {
	slots := p[v]
	i, there := slices.BinarySearch(slots, slot)
	switch {
	case !there:
	case len(slots) == 1:
		delete(p, v)
	default:
		p[v] = slices.Delete(slots, i, i+1)
	}
}
