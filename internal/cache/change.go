package cache

import (
	"strconv"

	"github.com/yare-go/yare/internal/cache/internal/database"
)

// Change is one change of a stream, as a [Subscriber] receives it.
type Change struct {
	Type ChangeType
	// Before is the record that the store had before the change. It is set if Type is Modified
	// or Deleted.
	Before Record
	// After is the record that the store has now. It is set if Type is Added or Modified.
	After Record
	// Initial is true if the change precedes Synced: the object existed before the
	// subscription began.
	Initial bool
	// Missed is true if the stream has missed states of the object between Before and After,
	// and the program has read or written one of them. What differs between Before and After is then
	// not all that matters.
	Missed bool

	before, after *database.PackedObject
}

// ChangeType is the type of a [Change].
type ChangeType int

const (
	// Added means that the subscriber did not know the object.
	Added ChangeType = iota + 1
	// Modified means that the subscriber knew another version of the same object. The same name
	// under another UID is a Deleted and an Added.
	Modified
	// Deleted means that the object is gone, or no longer matches the selectors of the stream.
	Deleted
	// Synced means that the subscriber knows all objects. It comes once, and concerns no object.
	Synced
	// Unlisted means that the first list has failed, and may fail for long, so that Synced may not come: see
	// [follow.ChangeUnlisted]. It comes after each such failure until Synced, and concerns no object.
	Unlisted
	// DoubtSettled means that a store was in doubt, and is right again. The server was restored from a backup, or its
	// answers have contradicted the store. After a restoration, DoubtSettled is published by each stream whose versions
	// come from the restored server. DoubtSettled concerns no object, and comes after the changes of the
	// stream that follow from the restoration. One restoration may lead to several DoubtSettled. What was derived
	// from resource versions no longer holds. What was decided by a read of another store may have been
	// decided by a state that the restoration has undone.
	DoubtSettled
)

// String returns the name of the type.
func (t ChangeType) String() string {
	switch t {
	case Added:
		return "Added"
	case Modified:
		return "Modified"
	case Deleted:
		return "Deleted"
	case Synced:
		return "Synced"
	case Unlisted:
		return "Unlisted"
	case DoubtSettled:
		return "DoubtSettled"
	default:
		return "ChangeType(" + strconv.Itoa(int(t)) + ")"
	}
}

// Record returns After, or Before for a deletion. It returns the zero Record for Synced,
// Unlisted and DoubtSettled.
func (c Change) Record() Record {
	if c.Type == Deleted {
		return c.Before
	}
	return c.After
}

// BeforeObject returns Before with the content that the object had.
func (c Change) BeforeObject() Object { return Object{Record: c.Before, packed: c.before} }

// AfterObject returns After with its content.
func (c Change) AfterObject() Object { return Object{Record: c.After, packed: c.after} }

// Subscriber receives the changes of one stream: one at a time, in the order of the stream,
// and always in a goroutine of [Cache]. It must not block for long, because the stream
// and its other subscribers wait meanwhile. It may read the stores, which stand at the
// change; it may Open other streams, and the same one; it must not Close a [Subscription].
type Subscriber func(Change)
