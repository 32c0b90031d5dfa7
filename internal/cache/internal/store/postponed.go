package store

import "time"

// postponed holds the slots of the contents that wait to be compressed. A version of an object that comes alone is kept
// as it was sent at first, for two reasons. The reconcile that follows the change reads the version without
// decompression. And a batch is compressed in less time than single contents, because the code and the table of the
// codec are in the caches of the processor. A version that comes soon after another one finds them there, so it is
// compressed at once.
//
// Example: the versions 7, 8 and 9 of the object a come, one each second, and a version of b. The slots of a, a, a and b
// are postponed. The batch compresses the version 9 of a, and b.
type postponed struct {
	// lastPut is when the last content came, postponed or not.
	lastPut time.Time
	// slots may hold a slot twice, a free slot, or the slot of an object that is compressed by now.
	slots []uint32
	// bytes is the size of the contents that were added, in bytes.
	bytes int
}

const (
	// maxPostponed is how many contents wait at most.
	maxPostponed = 16
	// maxPostponedBytes is how many bytes wait at most, besides the last content.
	maxPostponedBytes = 64 << 10
	// maxPostponedSize is the size of the largest content that waits, in bytes.
	maxPostponedSize = maxPostponedBytes / 4
	// minPostponedGap is how long before a content that waits no other one has come.
	minPostponedGap = 500 * time.Microsecond
)

// add adds the slot of a content of size bytes.
func (p *postponed) add(slot uint32, size int) {
	p.slots = append(p.slots, slot)
	p.bytes += size
}

// isFull reports whether the batch is due.
func (p *postponed) isFull() bool {
	return len(p.slots) >= maxPostponed || p.bytes >= maxPostponedBytes
}

// clear removes all slots.
func (p *postponed) clear() { p.slots, p.bytes = p.slots[:0], 0 }
