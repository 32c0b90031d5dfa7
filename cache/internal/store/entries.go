package store

import (
	"fmt"
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/yare-go/yare/cache/internal/codec"
	"github.com/yare-go/yare/cache/internal/slots"
	"github.com/yare-go/yare/kube"
)

// entries holds entries in numbered slots, and the indexes that find the slots. It must not be used
// concurrently while it changes.
type entries struct {
	// slots holds the entries. It is nil at the slots in free. An object keeps its slot for as
	// long as it exists.
	slots []*Entry
	free  []uint32
	table slots.Table
	// namespaces is nil if there can be only one.
	namespaces *recordIndex
	// owners finds slots by the UIDs of all owners.
	owners *recordIndex
	// labels finds slots by key and value, for the keys of indexLabel.
	labels map[string]*recordIndex
	// recordIndexes are namespaces, owners and labels.
	recordIndexes  []*recordIndex
	contentIndexes []*contentIndex
	// bytes is the size of all contents, and json their size before they were compressed.
	bytes, json int64
	// codecs holds, for each codec that contents are written with, their number.
	codecs map[*codec.Codec]int
}

func newEntries(isOneNamespace bool) *entries {
	all := &entries{labels: make(map[string]*recordIndex), codecs: make(map[*codec.Codec]int)}
	all.owners = newRecordIndex(func(dst []uint64, e *Entry) []uint64 {
		for _, o := range e.Owners() {
			dst = append(dst, hashOfValue(string(o.UID)))
		}
		return dst
	})
	all.recordIndexes = []*recordIndex{all.owners}
	if !isOneNamespace {
		all.namespaces = newRecordIndex(func(dst []uint64, e *Entry) []uint64 {
			return append(dst, hashOfValue(e.Namespace()))
		})
		all.recordIndexes = append(all.recordIndexes, all.namespaces)
	}
	return all
}

// find returns the entry of k, or nil.
func (all *entries) find(k kube.Key) *Entry {
	if slot, ok := all.slotOf(k); ok {
		return all.slots[slot]
	}
	return nil
}

// slotOf returns the slot of k.
func (all *entries) slotOf(k kube.Key) (slot uint32, ok bool) {
	return all.table.Find(hashOfKey(k), func(slot uint32) bool { return all.slots[slot].hasKey(k) })
}

// hashOfSlot returns the hash of the key in a slot.
func (all *entries) hashOfSlot(slot uint32) uint64 { return hashOfKey(all.slots[slot].Key()) }

func hashOfKey(k kube.Key) uint64 {
	// The names in one namespace differ, and the names in all namespaces mostly differ too.
	return maphash.String(hashSeed, k.Name) ^ 31*maphash.String(hashSeed, k.Namespace)
}

// put puts e into the slot of its key. It returns the slot, and the entry that e replaces, or nil.
func (all *entries) put(e *Entry) (slot uint32, before *Entry) {
	slot, exists := all.slotOf(e.Key())
	if exists {
		before = all.slots[slot]
		all.replace(slot, e)
	} else {
		slot = all.allocate(e)
		all.table.Insert(slot, all.hashOfSlot)
		all.count(e, +1)
	}
	for _, x := range all.recordIndexes {
		x.replace(slot, before, e)
	}
	return slot, before
}

// replace puts e into a slot, in place of another entry of the same object.
func (all *entries) replace(slot uint32, e *Entry) {
	all.count(all.slots[slot], -1)
	all.count(e, +1)
	all.slots[slot] = e
}

// remove removes the object of that key, and returns its entry, or nil.
func (all *entries) remove(k kube.Key) (before *Entry) {
	slot, exists := all.slotOf(k)
	if !exists {
		return nil
	}
	before = all.slots[slot]
	all.count(before, -1)
	for _, x := range all.recordIndexes {
		x.replace(slot, before, nil)
	}
	for _, x := range all.contentIndexes {
		x.set(slot, nil, false)
	}
	all.table.Remove(slot, all.hashOfSlot)
	all.slots[slot] = nil
	all.free = append(all.free, slot)
	return before
}

// allocate puts e into a free slot.
func (all *entries) allocate(e *Entry) (slot uint32) {
	if n := len(all.free); n > 0 {
		slot, all.free = all.free[n-1], all.free[:n-1]
		all.slots[slot] = e
		return slot
	}
	all.slots = append(all.slots, e)
	return uint32(len(all.slots) - 1)
}

// count adds the sizes of e n times.
func (all *entries) count(e *Entry, n int) {
	all.bytes += int64(n * len(e.content()))
	all.json += int64(n) * int64(e.size)
	if e.codec == nil {
		return
	}
	if all.codecs[e.codec] += n; all.codecs[e.codec] == 0 {
		delete(all.codecs, e.codec)
	}
}

// stats returns the Stats of the entries, without the number of dictionaries.
func (all *entries) stats() Stats {
	stats := Stats{Objects: all.table.Len(), Bytes: all.bytes, JSON: all.json}
	for c := range all.codecs {
		stats.Dictionary += int64(c.DictionarySize())
	}
	return stats
}

// sharedOwners returns the owners in m. It returns the list of another entry if that entry has the same owners.
func (all *entries) sharedOwners(m *metadata) *[]kube.Owner {
	if found := all.owners.Slots(maphash.Bytes(hashSeed, m.owners[0].uid)); len(found) > 0 {
		if shared := all.slots[found[0]].owners; m.isSameOwners(*shared) {
			return shared
		}
	}
	owners := slices.Clip(m.ownerList())
	return &owners
}

// contentIndex returns the index of x, or nil.
func (all *entries) contentIndex(x *kube.Index) *contentIndex {
	for _, each := range all.contentIndexes {
		if each.of == x {
			return each
		}
	}
	return nil
}

// indexLabel adds an index of the label key, unless there is one.
func (all *entries) indexLabel(key string) {
	if all.labels[key] != nil {
		return
	}
	x := newRecordIndex(func(dst []uint64, e *Entry) []uint64 {
		if v, ok := e.Labels().Lookup(key); ok {
			dst = append(dst, hashOfValue(v))
		}
		return dst
	})
	for slot, e := range all.slots {
		if e != nil {
			x.replace(uint32(slot), nil, e)
		}
	}
	all.labels[key] = x
	all.recordIndexes = append(all.recordIndexes, x)
}

// candidates returns a superset of the matching entries, taken from the smallest applicable
// index. A content index decides here, because an entry does not have its values.
func (all *entries) candidates(f Filter) []*Entry {
	if f.Index != nil {
		x := all.contentIndex(f.Index)
		if x == nil || !x.isReady() {
			panic(fmt.Sprintf("the index %q is not kept: add it with Store.Index", f.Index))
		}
		return all.at(x.appendCandidates(nil, f.Value))
	}
	best, found := []uint32(nil), false
	consider := func(slots []uint32) {
		if !found || len(slots) < len(best) {
			best, found = slots, true
		}
	}
	if f.Namespace != "" && all.namespaces != nil {
		consider(all.namespaces.Slots(hashOfValue(f.Namespace)))
	}
	if f.Owner != "" {
		consider(all.owners.Slots(hashOfValue(string(f.Owner))))
	}
	if f.Labels != nil && len(all.labels) > 0 {
		requirements, _ := f.Labels.Requirements()
		for _, r := range requirements {
			if v, ok := onlyValue(r); ok && all.labels[r.Key()] != nil {
				consider(all.labels[r.Key()].Slots(hashOfValue(v)))
			}
		}
	}
	if found {
		return all.at(best)
	}
	everything := make([]*Entry, 0, all.table.Len())
	for _, e := range all.slots {
		if e != nil {
			everything = append(everything, e)
		}
	}
	return everything
}

// at returns the entries in slots.
func (all *entries) at(slots []uint32) []*Entry {
	entries := make([]*Entry, len(slots))
	for i, slot := range slots {
		entries[i] = all.slots[slot]
	}
	return entries
}

// onlyValue returns the value that r demands, if there is only one.
func onlyValue(r labels.Requirement) (string, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		values := r.Values()
		return values.UnsortedList()[0], values.Len() == 1
	}
	return "", false
}
