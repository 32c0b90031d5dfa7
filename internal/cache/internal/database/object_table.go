package database

import (
	"fmt"
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/yare-go/yare/internal/cache/internal/codec"
	"github.com/yare-go/yare/internal/cache/internal/slots"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// objectTable holds packed objects in numbered slots, and the indexes that find the slots. It must not be used
// concurrently while it changes.
type objectTable struct {
	// slots holds the packed objects. It is nil at the slots in free. An object keeps its slot for as
	// long as it exists.
	slots []*PackedObject
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

func newObjectTable(isOneNamespace bool) *objectTable {
	t := &objectTable{labels: make(map[string]*recordIndex), codecs: make(map[*codec.Codec]int)}
	t.owners = newRecordIndex(func(dst []uint64, p *PackedObject) []uint64 {
		for _, o := range p.Owners() {
			dst = append(dst, hashOfValue(string(o.UID)))
		}
		return dst
	})
	t.recordIndexes = []*recordIndex{t.owners}
	if !isOneNamespace {
		t.namespaces = newRecordIndex(func(dst []uint64, p *PackedObject) []uint64 {
			return append(dst, hashOfValue(p.Namespace()))
		})
		t.recordIndexes = append(t.recordIndexes, t.namespaces)
	}
	return t
}

// find returns the packed object of k, or nil.
func (t *objectTable) find(k kube.Key) *PackedObject {
	if slot, ok := t.slotOf(k); ok {
		return t.slots[slot]
	}
	return nil
}

// slotOf returns the slot of k.
func (t *objectTable) slotOf(k kube.Key) (slot uint32, ok bool) {
	return t.table.Find(hashOfKey(k), func(slot uint32) bool { return t.slots[slot].hasKey(k) })
}

// hashOfSlot returns the hash of the key in a slot.
func (t *objectTable) hashOfSlot(slot uint32) uint64 { return hashOfKey(t.slots[slot].Key()) }

func hashOfKey(k kube.Key) uint64 {
	// The names in one namespace differ, and the names in all namespaces mostly differ too.
	return maphash.String(hashSeed, k.Name) ^ 31*maphash.String(hashSeed, k.Namespace)
}

// put puts p into the slot of its key. It returns the slot, and the packed object that p replaces, or nil.
func (t *objectTable) put(p *PackedObject) (slot uint32, before *PackedObject) {
	slot, exists := t.slotOf(p.Key())
	if exists {
		before = t.slots[slot]
		t.replace(slot, p)
	} else {
		slot = t.allocate(p)
		t.table.Insert(slot, t.hashOfSlot)
		t.count(p, +1)
	}
	for _, x := range t.recordIndexes {
		x.replace(slot, before, p)
	}
	return slot, before
}

// replace puts p into a slot, in place of another version of the same object.
func (t *objectTable) replace(slot uint32, p *PackedObject) {
	t.count(t.slots[slot], -1)
	t.count(p, +1)
	t.slots[slot] = p
}

// remove removes and returns the packed object of that key. It returns nil if there is none.
func (t *objectTable) remove(k kube.Key) (before *PackedObject) {
	slot, exists := t.slotOf(k)
	if !exists {
		return nil
	}
	before = t.slots[slot]
	t.count(before, -1)
	for _, x := range t.recordIndexes {
		x.replace(slot, before, nil)
	}
	for _, x := range t.contentIndexes {
		x.set(slot, nil, false)
	}
	t.table.Remove(slot, t.hashOfSlot)
	t.slots[slot] = nil
	t.free = append(t.free, slot)
	return before
}

// allocate puts p into a free slot.
func (t *objectTable) allocate(p *PackedObject) (slot uint32) {
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
		t.slots[slot] = p
		return slot
	}
	t.slots = append(t.slots, p)
	return uint32(len(t.slots) - 1)
}

// count adds the sizes of p n times.
func (t *objectTable) count(p *PackedObject, n int) {
	t.bytes += int64(n * len(p.content()))
	t.json += int64(n) * int64(p.size)
	if p.codec == nil {
		return
	}
	if t.codecs[p.codec] += n; t.codecs[p.codec] == 0 {
		delete(t.codecs, p.codec)
	}
}

// stats returns the Stats of the packed objects, without the number of dictionaries.
func (t *objectTable) stats() Stats {
	stats := Stats{Objects: t.table.Len(), Bytes: t.bytes, JSON: t.json}
	for c := range t.codecs {
		stats.Dictionary += int64(c.DictionarySize())
	}
	return stats
}

// sharedOwners returns the owners in m. It returns the list of another packed object if that has the same owners.
func (t *objectTable) sharedOwners(m *metadata) *[]kube.Owner {
	if found := t.owners.Slots(maphash.Bytes(hashSeed, m.owners[0].uid)); len(found) > 0 {
		if shared := t.slots[found[0]].owners; m.hasSameOwners(*shared) {
			return shared
		}
	}
	owners := slices.Clip(m.ownerList())
	return &owners
}

// contentIndex returns the index of x, or nil.
func (t *objectTable) contentIndex(x wire.Index) *contentIndex {
	for _, each := range t.contentIndexes {
		if each.of == x {
			return each
		}
	}
	return nil
}

// indexLabel adds an index of the label key, unless there is one.
func (t *objectTable) indexLabel(key string) {
	if t.labels[key] != nil {
		return
	}
	x := newRecordIndex(func(dst []uint64, p *PackedObject) []uint64 {
		if v, ok := p.Labels().Lookup(key); ok {
			dst = append(dst, hashOfValue(v))
		}
		return dst
	})
	for slot, p := range t.slots {
		if p != nil {
			x.replace(uint32(slot), nil, p)
		}
	}
	t.labels[key] = x
	t.recordIndexes = append(t.recordIndexes, x)
}

// candidates returns a superset of the matching packed objects, taken from the smallest applicable
// index. A content index decides here, because a packed object does not have its values.
func (t *objectTable) candidates(f Filter) []*PackedObject {
	if f.Index != nil {
		x := t.contentIndex(f.Index)
		if x == nil || !x.isReady() {
			panic(fmt.Sprintf("the index %q is not kept: add it with Database.Index", f.Index))
		}
		return t.at(x.appendCandidates(nil, f.Value))
	}
	best, found := []uint32(nil), false
	consider := func(slots []uint32) {
		if !found || len(slots) < len(best) {
			best, found = slots, true
		}
	}
	if f.Namespace != "" && t.namespaces != nil {
		consider(t.namespaces.Slots(hashOfValue(f.Namespace)))
	}
	if f.Owner != "" {
		consider(t.owners.Slots(hashOfValue(string(f.Owner))))
	}
	if f.Labels != nil && len(t.labels) > 0 {
		requirements, _ := f.Labels.Requirements()
		for _, r := range requirements {
			if v, ok := onlyValue(r); ok && t.labels[r.Key()] != nil {
				consider(t.labels[r.Key()].Slots(hashOfValue(v)))
			}
		}
	}
	if found {
		return t.at(best)
	}
	everything := make([]*PackedObject, 0, t.table.Len())
	for _, p := range t.slots {
		if p != nil {
			everything = append(everything, p)
		}
	}
	return everything
}

// at returns the packed objects in slots.
func (t *objectTable) at(slots []uint32) []*PackedObject {
	packed := make([]*PackedObject, len(slots))
	for i, slot := range slots {
		packed[i] = t.slots[slot]
	}
	return packed
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
