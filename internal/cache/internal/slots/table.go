// Package slots finds numbered slots: by key, with a [Table], and by values, with an [Index].
// It holds nothing but numbers, because what is in the slots has the keys and the values. So
// both take a tenth of the memory of a map.
//
// None of the types may be used concurrently while it changes.
package slots

// Table is a hash table with open addressing. It does not hold the keys: its caller provides the
// hash of a slot's key, and decides which slot has a key. The zero Table is empty.
//
// Example of a table of 8 cells. The keys of the slots 0 and 1 have the hash 3, and the key of the slot 2 has the hash
// 4:
//
//	insert 0, 1, 2   cell 3 has slot 0, cell 4 has slot 1, cell 5 has slot 2
//	find slot 2      looks at the cells 4 and 5
//	remove 0         slot 1 moves to cell 3, and slot 2 to cell 4. So no empty cell is before them
type Table struct {
	// cells hold the number of a slot plus one, or 0. Their number is a power of two, and at
	// least a quarter of them are 0.
	cells []uint32
	used  int
}

// Len returns the number of slots in the table.
func (t *Table) Len() int { return t.used }

// Find returns the slot with a key, whose hash is hash. hasKey reports whether a slot has the key.
func (t *Table) Find(hash uint64, hasKey func(slot uint32) bool) (slot uint32, ok bool) {
	if len(t.cells) == 0 {
		return 0, false
	}
	mask := uint64(len(t.cells) - 1)
	for i := hash & mask; t.cells[i] != 0; i = (i + 1) & mask {
		if slot := t.cells[i] - 1; hasKey(slot) {
			return slot, true
		}
	}
	return 0, false
}

// Insert adds a slot whose key is not in the table. hash returns the hash of the key of a slot
// that is in the table, or of this one.
func (t *Table) Insert(slot uint32, hash func(slot uint32) uint64) {
	if 4*(t.used+1) > 3*len(t.cells) {
		old := t.cells
		t.cells = make([]uint32, max(8, 2*len(old)))
		for _, c := range old {
			if c != 0 {
				t.insertCell(c, hash(c-1))
			}
		}
	}
	t.insertCell(slot+1, hash(slot))
	t.used++
}

func (t *Table) insertCell(cell uint32, hash uint64) {
	mask := uint64(len(t.cells) - 1)
	i := hash & mask
	for t.cells[i] != 0 {
		i = (i + 1) & mask
	}
	t.cells[i] = cell
}

// Remove removes a slot that is in the table. hash is the function that Insert received.
func (t *Table) Remove(slot uint32, hash func(slot uint32) uint64) {
	mask := uint64(len(t.cells) - 1)
	hole := hash(slot) & mask
	for t.cells[hole] != slot+1 {
		hole = (hole + 1) & mask
	}
	// A cell behind the hole may have been pushed there by the removed cell, and moves up.
	for i := (hole + 1) & mask; t.cells[i] != 0; i = (i + 1) & mask {
		home := hash(t.cells[i]-1) & mask
		if (i-home)&mask >= (i-hole)&mask {
			t.cells[hole] = t.cells[i]
			hole = i
		}
	}
	t.cells[hole] = 0
	t.used--
}
