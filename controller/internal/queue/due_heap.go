package queue

import "container/heap"

// dueHeap is a heap of the entries that become Due at a later time. The entry with the nearest time is the
// first. Entries with equal times are in the order in which they were put into the heap.
type dueHeap struct {
	entries []*entry
	seq     uint64
}

// nearest returns the time of the first entry, or never if there is none.
func (d *dueHeap) nearest() instant {
	if len(d.entries) == 0 {
		return never
	}
	return d.entries[0].schedule.due
}

// put adds an entry, or moves it after its time changed.
func (d *dueHeap) put(e *entry) {
	d.seq++
	e.seq = d.seq
	if e.index < 0 {
		heap.Push((*byDue)(d), e)
	} else {
		heap.Fix((*byDue)(d), e.index)
	}
}

// remove removes an entry, if the heap contains it.
func (d *dueHeap) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove((*byDue)(d), e.index)
	}
}

// byDue implements heap.Interface for dueHeap.
type byDue dueHeap

func (d *byDue) Len() int { return len(d.entries) }

func (d *byDue) Less(i, j int) bool {
	a, b := d.entries[i], d.entries[j]
	if a.schedule.due != b.schedule.due {
		return a.schedule.due < b.schedule.due
	}
	return a.seq < b.seq
}

func (d *byDue) Swap(i, j int) {
	d.entries[i], d.entries[j] = d.entries[j], d.entries[i]
	d.entries[i].index, d.entries[j].index = i, j
}

func (d *byDue) Push(x any) {
	e := x.(*entry)
	e.index = len(d.entries)
	d.entries = append(d.entries, e)
}

func (d *byDue) Pop() any {
	last := len(d.entries) - 1
	e := d.entries[last]
	d.entries[last] = nil
	d.entries = d.entries[:last]
	e.index = -1
	if space := cap(d.entries); space > minBuckets && last < space/16 {
		d.entries = append(make([]*entry, 0, space/8), d.entries...)
	}
	return e
}
