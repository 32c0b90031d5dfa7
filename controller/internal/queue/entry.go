package queue

import "math"

// An instant is a time on the monotonic clock, in nanoseconds since the queue was made.
type instant int64

// never is later than every time that can be asked for.
const never instant = math.MaxInt64

// state says where an entry is, and so which of its fields count.
type state uint8

const (
	waiting    state = iota // in delayed
	backingOff              // in delayed, after a failure: an echo does not shorten it
	readyLow                // in ready[Low], and in delayed if it becomes High later
	readyHigh               // in ready[High]
	running                 // handed out
)

// entry is a key that is running or has a next round. What is touched together stands
// together: with thousands of keys the cost of a round is that of reaching its memory.
type entry struct {
	key   Key
	chain *entry // in the table

	state   state
	readyAt instant // since when a worker could have taken it

	// next is when the next round is due. While the key is running it collects what the
	// triggers of that time ask for.
	next wish
	// echo is the same for echoes, apart while the key is running, because only the
	// outcome of the round says whether they count.
	echo wish

	before, after *entry // in the list of the state

	// index is the place in delayed, -1 outside; seq orders entries of equal time there.
	index int
	seq   uint64

	failures int    // in a row
	causes   Causes // of the next round
}

// wish is when a round is wanted: at once but behind all other work, or by a certain time
// and then before it, or both. A Low trigger must not delay a retry that is due soon, which
// is why the first does not replace the second.
type wish struct {
	due instant // never: no certain time
	why reason  // of due
	low bool
}

// noWish asks for no round.
func noWish() wish { return wish{due: never} }

func (w *wish) empty() bool { return !w.low && w.due == never }

// reason is what asked for a time.
type reason uint8

const (
	byTrigger reason = iota // its cause was noted when it came
	byRequeue
	byRetry
)

// merge makes w the earliest of both.
func (w *wish) merge(o wish) {
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
