package queue

import (
	"container/heap"
	"hash/maphash"
)

// minBuckets is the least number of buckets of a table.
const minBuckets = 1024

// table holds the entries by key. A map would do, but it hashes a key four times from Add to
// Done, a good part of what they cost, and it never shrinks: the initial list of a large
// cluster would stay in it until the process ends.
type table struct {
	seed maphash.Seed

	// buckets are chains of entries, which the field chain links. The number of buckets is a power of two. It is
	// minBuckets, or between once and sixteen times len.
	buckets []*entry
	len     int

	// free is the first of the entries to use again, which next links, and freeCount is their number. So a steady number
	// of keys allocates nothing. There are at most maxFree.
	free      *entry
	freeCount int
}

// maxFree is how many entries are kept to be used again.
const maxFree = 256

func newTable() table {
	return table{seed: maphash.MakeSeed(), buckets: make([]*entry, minBuckets)}
}

// find returns the place of the pointer to the entry of key. If there is no entry, the place
// holds nil.
func (t *table) find(key *Key) **entry {
	at := t.bucket(key)
	for *at != nil && (*at).key != *key {
		at = &(*at).chain
	}
	return at
}

func (t *table) bucket(key *Key) **entry {
	h := maphash.String(t.seed, key.Name)
	h = h*31 + maphash.String(t.seed, key.Namespace)
	if key.Cluster != "" {
		h = h*31 + maphash.String(t.seed, key.Cluster)
	}
	return &t.buckets[h&uint64(len(t.buckets)-1)]
}

// add puts a new entry for key at the place that find returned.
func (t *table) add(at **entry, key Key) *entry {
	e := t.free
	if e == nil {
		e = new(entry)
	} else {
		t.free = e.next
		t.freeCount--
		e.next = nil
	}
	e.key = key
	e.index = -1
	e.schedule = noSchedule()
	*at = e
	t.len++
	if t.len > len(t.buckets) {
		t.resize(2 * len(t.buckets))
	}
	return e
}

// drop removes the entry at the place that find returned. The entry must be in no list.
func (t *table) drop(at **entry) {
	e := *at
	*at = e.chain
	*e = entry{}
	if t.freeCount < maxFree {
		e.next = t.free
		t.free = e
		t.freeCount++
	}
	t.len--
	if t.len < len(t.buckets)/16 && len(t.buckets) > minBuckets {
		t.resize(len(t.buckets) / 8)
	}
}

func (t *table) resize(n int) {
	old := t.buckets
	t.buckets = make([]*entry, max(n, minBuckets))
	for _, e := range old {
		for e != nil {
			rest := e.chain
			at := t.bucket(&e.key)
			e.chain, *at = *at, e
			e = rest
		}
	}
}

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
		heap.Fix((*byDue)(d), int(e.index))
	}
}

// remove removes an entry, if the heap contains it.
func (d *dueHeap) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove((*byDue)(d), int(e.index))
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
	d.entries[i].index, d.entries[j].index = int32(i), int32(j)
}

func (d *byDue) Push(x any) {
	e := x.(*entry)
	e.index = int32(len(d.entries))
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
