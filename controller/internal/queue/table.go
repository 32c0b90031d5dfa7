package queue

import "hash/maphash"

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

	// free is the first of the entries to use again, which next links. So a steady number of keys allocates
	// nothing. The list is emptied when the table shrinks, so that it has never more entries than there are buckets.
	free *entry
}

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
		e.next = nil
	}
	e.key = key
	e.index = -1
	e.schedule, e.afterEcho, e.afterPossibleEcho = noSchedule(), noSchedule(), noSchedule()
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
	*e = entry{next: t.free}
	t.free = e
	t.len--
	if t.len < len(t.buckets)/16 && len(t.buckets) > minBuckets {
		t.free = nil
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
