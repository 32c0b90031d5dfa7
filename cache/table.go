package cache

import (
	"hash/maphash"

	"github.com/yare-go/yare/kube"
)

// table finds the slot of a key: a hash table with open addressing that holds nothing but
// numbers of slots, because the keys are in the entries. A map of Go would take ten times
// the memory.
type table struct {
	// cells hold a slot's number plus one, or 0. Their number is a power of two, and at
	// least a quarter of them are 0.
	cells []uint32
	used  int
}

func hashOfKey(k kube.Key) uint64 {
	// The names of one namespace differ, and mostly so do the names of all.
	return maphash.String(hashSeed, k.Name) ^ 31*maphash.String(hashSeed, k.Namespace)
}

func (e *entry) is(k kube.Key) bool { return e.name == k.Name && e.namespace.Value() == k.Namespace }

// find is the slot of k.
func (t *table) find(slots []*entry, k kube.Key) (slot uint32, ok bool) {
	if len(t.cells) == 0 {
		return 0, false
	}
	mask := uint64(len(t.cells) - 1)
	for i := hashOfKey(k) & mask; t.cells[i] != 0; i = (i + 1) & mask {
		if slot := t.cells[i] - 1; slots[slot].is(k) {
			return slot, true
		}
	}
	return 0, false
}

// insert puts in a slot, whose key must not be there.
func (t *table) insert(slots []*entry, slot uint32) {
	if 4*(t.used+1) > 3*len(t.cells) {
		old := t.cells
		t.cells = make([]uint32, max(8, 2*len(old)))
		for _, c := range old {
			if c != 0 {
				t.place(slots, c)
			}
		}
	}
	t.place(slots, slot+1)
	t.used++
}

func (t *table) place(slots []*entry, cell uint32) {
	mask := uint64(len(t.cells) - 1)
	i := hashOfKey(slots[cell-1].key()) & mask
	for t.cells[i] != 0 {
		i = (i + 1) & mask
	}
	t.cells[i] = cell
}

// remove takes out a slot that is there, while slots still has its entry.
func (t *table) remove(slots []*entry, slot uint32) {
	mask := uint64(len(t.cells) - 1)
	hole := hashOfKey(slots[slot].key()) & mask
	for t.cells[hole] != slot+1 {
		hole = (hole + 1) & mask
	}
	// What comes behind may have been pushed there by what goes, and moves up.
	for i := (hole + 1) & mask; t.cells[i] != 0; i = (i + 1) & mask {
		home := hashOfKey(slots[t.cells[i]-1].key()) & mask
		if (i-home)&mask >= (i-hole)&mask {
			t.cells[hole] = t.cells[i]
			hole = i
		}
	}
	t.cells[hole] = 0
	t.used--
}
