package queue

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
	high, low bool
	// due is the certain time, or the instant never.
	due       instant
	dueReason dueReason
}

// dueReason is what asked for a due time.
type dueReason uint8

const (
	byTrigger dueReason = iota // the delayedTrigger holds the cause
	byRequeue
	byRetry
)

// noSchedule asks for no reconcile.
func noSchedule() schedule { return schedule{due: never} }

func (s *schedule) isEmpty() bool { return !s.high && !s.low && s.due == never }

// merge makes s the earliest of both.
func (s *schedule) merge(o schedule) {
	s.high = s.high || o.high
	s.low = s.low || o.low
	if o.due < s.due {
		s.due, s.dueReason = o.due, o.dueReason
	}
}
