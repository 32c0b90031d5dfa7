package queue

import (
	"math"
	"slices"
	"time"
)

// An instant is a time on the monotonic clock, in nanoseconds since the queue was made.
type instant int64

// never is later than every time that can be asked for.
const never instant = math.MaxInt64

// after returns the instant d after i, or i if d is negative.
func (i instant) after(d time.Duration) instant {
	d = max(d, 0)
	if d >= time.Duration(never-i) {
		return never - 1
	}
	return i + instant(d)
}

// state is where an entry is. It decides which of the entry's fields count.
type state uint8

const (
	waiting    state = iota // in delayed
	backingOff              // in delayed, after a failure
	ready                   // in the list of its class, and in delayed if a class above comes later
	running                 // handed out
)

// entry is a key that is running or has a next reconcile. Fields that are used together stand
// together: with thousands of keys a reconcile costs mainly the access to its memory.
type entry struct {
	key   Key
	chain *entry // in the table

	state state
	// class is the list that a ready entry is in.
	class   Priority
	readyAt instant // since when a worker could have taken it

	// schedule is when the next reconcile is due. While the key is running, schedule collects what the
	// triggers of that time ask for.
	schedule schedule
	// afterEcho and afterPossibleEcho collect what echoes and possible echoes ask for while the key is
	// running. They are apart from schedule, because only the outcome decides whether they count.
	afterEcho, afterPossibleEcho schedule
	// hasEchoEndedBackoff is true once a possible echo has ended a back-off, until a success.
	hasEchoEndedBackoff bool
	// hasWrittenStatus is true if the running reconcile has led to a trigger that is OwnStatus.
	hasWrittenStatus bool
	// needsObject is true if all triggers since the entry was made need the object.
	needsObject bool

	// later holds the delayed triggers whose time has not come, sorted by it. A reconcile
	// before their time does not remove them.
	later []delayedTrigger

	prev, next *entry // in the list of the class

	// index is the place in delayed, -1 outside; seq orders entries of equal time there.
	index int
	seq   uint64

	failures int    // in a row
	causes   Causes // of the next reconcile
}

// delayedTrigger is a trigger with a NotBefore.
type delayedTrigger struct {
	due   instant
	cause Cause
}

// maxLater limits the delayed triggers of one key. Beyond it, the trigger that is closest to its
// successor is merged into the successor: it comes late, and is not lost.
const maxLater = 16

// addLater adds a delayed trigger, unless there is already one for the same time.
func (e *entry) addLater(t delayedTrigger) {
	i := slices.IndexFunc(e.later, func(o delayedTrigger) bool { return o.due >= t.due })
	if i < 0 {
		i = len(e.later)
	} else if e.later[i].due == t.due {
		return
	}
	e.later = slices.Insert(e.later, i, t)
	if len(e.later) <= maxLater {
		return
	}
	merged := 0
	for j := range len(e.later) - 1 {
		if e.later[j+1].due-e.later[j].due < e.later[merged+1].due-e.later[merged].due {
			merged = j
		}
	}
	e.later = slices.Delete(e.later, merged, merged+1)
}

// removeDue removes the delayed triggers whose time has come, and adds their causes.
func (e *entry) removeDue(now instant) {
	n := 0
	for n < len(e.later) && e.later[n].due <= now {
		e.causes.add(e.later[n].cause)
		n++
	}
	if n > 0 && n == len(e.later) {
		e.later = nil
		return
	}
	e.later = slices.Delete(e.later, 0, n)
}
