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

// state is the state of an entry. It decides which of the entry's fields count.
type state uint8

const (
	// waiting is an entry in the dueHeap.
	waiting state = iota
	// backingOff is an entry in the dueHeap after a failure.
	backingOff
	// ready is an entry in the list of its class. A Low entry is also in the dueHeap if it has a due time.
	ready
	// running is an entry that a worker has.
	running
)

// entry is a key that is running or has a next reconcile. Fields that are used together stand
// together: with thousands of keys a reconcile costs mainly the access to its memory.
type entry struct {
	key Key
	// chain is the next entry in the same bucket of the table.
	chain *entry

	state state
	// class is the list that a ready entry is in.
	class Priority
	// readyAt is the time since which a worker could have taken a ready entry.
	readyAt instant

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

	// delayedTriggers holds the triggers whose NotBefore has not come, sorted by that time. A reconcile
	// before that time does not remove them. A delayed trigger is not in the dueHeap: its entry is, by the
	// nearest time that the entry waits for.
	delayedTriggers []delayedTrigger

	// prev and next are the neighbors in the list of the class.
	prev, next *entry

	// index is the place of the entry in the dueHeap, or -1. seq orders entries with equal times there.
	index int
	seq   uint64

	// failureCount is the number of failures in a row.
	failureCount int
	// causes are the causes of the next reconcile.
	causes Causes
}

// delayedTrigger is a trigger with a NotBefore.
type delayedTrigger struct {
	due   instant
	cause Cause
}

// maxDelayedTriggers limits the delayed triggers of one key. If there are more, the trigger that is closest to its
// successor is merged into the successor. The merged trigger comes late, and is not lost.
const maxDelayedTriggers = 16

// addDelayedTrigger adds a delayed trigger, unless there is already one for the same time.
func (e *entry) addDelayedTrigger(t delayedTrigger) {
	i := slices.IndexFunc(e.delayedTriggers, func(o delayedTrigger) bool { return o.due >= t.due })
	if i < 0 {
		i = len(e.delayedTriggers)
	} else if e.delayedTriggers[i].due == t.due {
		return
	}
	e.delayedTriggers = slices.Insert(e.delayedTriggers, i, t)
	if len(e.delayedTriggers) <= maxDelayedTriggers {
		return
	}
	merged := 0
	for j := range len(e.delayedTriggers) - 1 {
		if e.delayedTriggers[j+1].due-e.delayedTriggers[j].due < e.delayedTriggers[merged+1].due-e.delayedTriggers[merged].due {
			merged = j
		}
	}
	e.delayedTriggers = slices.Delete(e.delayedTriggers, merged, merged+1)
}

// removeDue removes the delayed triggers whose time has come, and adds their causes.
func (e *entry) removeDue(now instant) {
	n := 0
	for n < len(e.delayedTriggers) && e.delayedTriggers[n].due <= now {
		e.causes.add(e.delayedTriggers[n].cause)
		n++
	}
	if n > 0 && n == len(e.delayedTriggers) {
		e.delayedTriggers = nil
		return
	}
	e.delayedTriggers = slices.Delete(e.delayedTriggers, 0, n)
}
