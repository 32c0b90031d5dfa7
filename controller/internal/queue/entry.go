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

// state is where an entry is.
type state uint8

const (
	// waiting is an entry in the dueHeap.
	waiting state = iota
	// backingOff is an entry in the dueHeap after a failure.
	backingOff
	// ready is an entry in the list of its class. A Low entry with a due time is also in the dueHeap.
	ready
	// running is an entry that a worker has.
	running
)

// entry is a key that is running or has a next reconcile. The test checkInvariants holds the invariants of the fields.
//
// Fields that are used together stand together: with thousands of keys a reconcile costs mainly the access to its
// memory.
type entry struct {
	// key is in no other entry of the table.
	key Key
	// chain is the next entry in the same bucket of the table.
	chain *entry

	// readyAt is the time since which a worker could have taken the entry. It counts only in the state ready.
	readyAt instant

	// schedule is when the next reconcile is due. While the key is running, schedule collects what the
	// triggers of that time ask for. By the state, it is:
	//
	//	waiting, backingOff  a due time alone
	//	ready                high in the class High, a due time that has come in the class Due, low in the class Low
	//	running              no due time
	schedule schedule

	// prev and next are the neighbors in the list of the class. They are nil unless the entry is ready. Of an entry that
	// is free, next is the next free one.
	prev, next *entry

	// seq orders entries with equal times in the dueHeap. index is the place of the entry there, or -1 if the entry is not
	// there: while it is running, in the classes High and Due, and in Low without a due time.
	seq   uint64
	index int32

	// failureCount is the number of failures in a row. It is not 0 in the state backingOff.
	failureCount int32

	state state
	// class is the list that the entry is in. It counts only in the state ready.
	class Priority
	// afterEcho and afterPossibleEcho collect what echoes and possible echoes ask for while the key is
	// running. They are apart from schedule, because only the outcome decides whether they count. They are empty unless
	// the entry is running.
	afterEcho, afterPossibleEcho classes
	// hasEchoEndedBackoff is true once a possible echo has ended a back-off, until a success. It is false if
	// failureCount is 0.
	hasEchoEndedBackoff bool
	// hasWrittenStatus is true if the running reconcile has led to a trigger that is OwnStatus. It is false unless the
	// entry is running.
	hasWrittenStatus bool
	// needsObject is true if all triggers since the entry was made need the object.
	needsObject bool

	// delayedTriggers holds the triggers whose NotBefore has not come, sorted by that time, each with another time. A
	// reconcile before that time does not remove them. There are at most maxDelayedTriggers. A delayed trigger is not in
	// the dueHeap: its entry is. Unless the entry is running, schedule is not due later than the first of them.
	delayedTriggers []delayedTrigger

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

// schedule is when the next reconcile of a key should run: at once and before all other work (high), at
// once and behind the other work, except for the share of readyKeys (low), at a certain time (due), or several of
// these. None of the three replaces another one, because a Low trigger must not delay a retry that is due soon.
//
// An example. The reconcile of a key has ended at 10:00:00, and asks for another one after 30 seconds:
//
//	what comes                            schedule
//	the requeue                           due 10:00:30 (byRequeue)
//	a resync (Low)                        low, due 10:00:30 (byRequeue)
//	a delayed trigger for 10:00:20        low, due 10:00:20 (byTrigger)
//	a change (High)                       high, low, due 10:00:20 (byTrigger)
//
// The change is reconciled first. After the resync alone, the key would be reconciled when no other
// work is left or the share of Low is due, and at 10:00:30 at the latest.
type schedule struct {
	// due is the certain time, or the instant never.
	due       instant
	dueReason dueReason
	classes
}

// classes are the classes in which a reconcile should run at once.
type classes struct{ high, low bool }

// merge adds the classes of o to c.
func (c *classes) merge(o classes) { c.high, c.low = c.high || o.high, c.low || o.low }

// isEmpty reports whether c has no class.
func (c classes) isEmpty() bool { return c == classes{} }

// dueReason is what asked for a due time.
type dueReason uint8

const (
	byTrigger dueReason = iota // the delayedTrigger holds the cause
	byRequeue
	byRetry
)

// noSchedule asks for no reconcile.
func noSchedule() schedule { return schedule{due: never} }

func (s *schedule) isEmpty() bool { return s.classes.isEmpty() && s.due == never }

// merge makes s the earliest of both.
func (s *schedule) merge(o schedule) {
	s.classes.merge(o.classes)
	if o.due < s.due {
		s.due, s.dueReason = o.due, o.dueReason
	}
}
