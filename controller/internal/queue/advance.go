package queue

import "time"

// Lock locks the queue, so that it does not change. It is for the clock, of which the queue is a member.
func (q *Queue) Lock() { q.mu.Lock() }

// Unlock unlocks the queue after Lock.
func (q *Queue) Unlock() { q.mu.Unlock() }

// IsAtRestLocked reports whether no key is ready or running. After Shutdown a ready key does not
// count, because no worker takes it.
func (q *Queue) IsAtRestLocked() bool {
	q.tick()
	return q.running == 0 && (q.shutdown || q.ready[Low].len+q.ready[Due].len+q.ready[High].len == 0)
}

// UntilDueLocked returns the time until the next key is due. It returns false if there is none.
func (q *Queue) UntilDueLocked() (time.Duration, bool) {
	nearest := q.delayed.nearest()
	if nearest == never || q.shutdown {
		return 0, false
	}
	return time.Duration(nearest) - q.clock.Since(q.start), true
}

// MovedLocked makes the keys Due whose time has come because the clock was moved.
func (q *Queue) MovedLocked() {
	q.timerAt = never
	q.arm(q.tick())
}

// signalRest signals the clock if the queue is at rest.
func (q *Queue) signalRest() {
	if q.IsAtRestLocked() {
		q.clock.SignalRest()
	}
}
