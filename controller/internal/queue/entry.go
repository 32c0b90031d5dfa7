package queue

import "math"

// An instant is a time on the monotonic clock, in nanoseconds since the queue was made.
type instant int64

// never is later than every time that can be asked for.
const never instant = math.MaxInt64

// state is where an entry is. It decides which of the entry's fields count.
type state uint8

const (
	waiting    state = iota // in delayed
	backingOff              // in delayed, after a failure
	ready                   // in the list of its class, and in delayed if a class above comes later
	running                 // handed out
)

// entry is a key that is running or has a next reconcile. What is touched together stands
// together: with thousands of keys a reconcile costs mainly the access to its memory.
type entry struct {
	key   Key
	chain *entry // in the table

	state state
	// class is the list that a ready entry is in.
	class   Priority
	readyAt instant // since when a worker could have taken it

	// next is when the next reconcile is due. While the key is running it collects what the
	// triggers of that time ask for.
	next wish
	// echo and maybe collect what echoes and possible echoes ask for while the key is running.
	// They are apart from next, because only the outcome decides whether they count.
	echo, maybe wish
	// isDoubtSpent is true once a possible echo has ended a back-off, until a success.
	isDoubtSpent bool

	// later holds the delayed triggers whose time has not come, sorted by it. A reconcile
	// before their time does not remove them.
	later []delayedTrigger

	before, after *entry // in the list of the class

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
	i := 0
	for i < len(e.later) && e.later[i].due < t.due {
		i++
	}
	if i < len(e.later) && e.later[i].due == t.due {
		return
	}
	e.later = append(e.later, delayedTrigger{})
	copy(e.later[i+1:], e.later[i:])
	e.later[i] = t
	if len(e.later) <= maxLater {
		return
	}
	merged := 0
	for j := range len(e.later) - 1 {
		if e.later[j+1].due-e.later[j].due < e.later[merged+1].due-e.later[merged].due {
			merged = j
		}
	}
	e.later = append(e.later[:merged], e.later[merged+1:]...)
}

// answerLater removes the delayed triggers whose time has come, and adds their causes.
func (e *entry) answerLater(now instant) {
	n := 0
	for n < len(e.later) && e.later[n].due <= now {
		e.causes.add(e.later[n].cause)
		n++
	}
	if n == 0 {
		return
	}
	if n == len(e.later) {
		e.later = nil
		return
	}
	e.later = append(e.later[:0], e.later[n:]...)
}

// wish is when a reconcile is wanted: at once and before all other work, at once but behind all
// other work, by a certain time, or several of these. They do not replace one another, because a
// Low trigger must not delay a retry that is due soon.
type wish struct {
	high, low bool
	due       instant // never: no certain time
	why       reason  // of due
}

// noWish asks for no reconcile.
func noWish() wish { return wish{due: never} }

func (w *wish) isEmpty() bool { return !w.high && !w.low && w.due == never }

// reason is the source of a due time.
type reason uint8

const (
	byTrigger reason = iota // the trigger holds its cause
	byRequeue
	byRetry
)

// merge makes w the earliest of both.
func (w *wish) merge(o wish) {
	w.high = w.high || o.high
	w.low = w.low || o.low
	if o.due < w.due {
		w.due, w.why = o.due, o.why
	}
}

// list is a queue of entries from which any can be taken out.
type list struct {
	first, last *entry
	len         int
}

func (l *list) push(e *entry) {
	e.before, e.after = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.after = e
	}
	l.last = e
	l.len++
}

func (l *list) remove(e *entry) {
	if e.before == nil {
		l.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		l.last = e.before
	} else {
		e.after.before = e.before
	}
	e.before, e.after = nil, nil
	l.len--
}
