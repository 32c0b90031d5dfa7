// Package queue decides which object a controller reconciles next.
//
// Triggers go in, reconciles come out. The queue has one entry per key that has work to do. These
// rules hold:
//
//   - One worker per key. A running key is not handed out again until Done. Triggers that come
//     meanwhile cause exactly one more reconcile, after it.
//   - Earliest wins. A key has one next reconcile, at the earliest time that a trigger, a requeue
//     or a retry asks for. The outcome of that reconcile replaces a later requeue or retry. A
//     delayed trigger stays until its time has come.
//   - A failed reconcile is followed by a back-off. A High trigger ends the back-off early. Low
//     triggers and echoes do not, and a possible echo does once.
//   - High overtakes Due, and Due overtakes Low. Within a class the first comes first. While Low
//     has work, at least one of every five reconciles is Low; while Due has work, at least one of
//     every three that are not Low is Due.
//   - Only work takes memory. A key that has nothing to do is not in the queue.
package queue

import (
	"context"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// Queue is the scheduler of one controller. It is safe for concurrent use.
type Queue struct {
	mu sync.Mutex

	// table holds every key that is running or has a next reconcile, and no other.
	table table

	ready readyKeys
	// isLowHeld reports whether no key of the class Low may be handed out: see [Queue.HoldLow]. It may be nil.
	isLowHeld func() bool

	// dueHeap holds the keys that become Due by themselves when their time comes. A key that is not
	// in ready as well waits until then. No key in the heap is running.
	dueHeap dueHeap

	// timer fires when the first key of dueHeap is due. timerAt is when the timer fires, or the instant never if
	// the timer is not set. Unless the clock was moved, timerAt is not later than the first key is due.
	timer   *time.Timer
	timerAt instant

	// idleWorkers holds the workers that wait because nothing is ready. Each key that becomes ready wakes one.
	idleWorkers idleWorkers

	runningCount int
	isShutdown   bool

	// retryCount and addCount count the retries and the triggers since New.
	retryCount, addCount uint64

	// clock decides what is due. It is nil for the real clock.
	clock *clock.Clock
	// start is the time from which instants are counted.
	start time.Time
}

// New returns an empty queue that takes its times from c. A nil c is the real clock.
func New(c *clock.Clock) *Queue {
	return &Queue{
		table:   newTable(),
		timerAt: never,
		clock:   c,
		start:   c.Now(),
	}
}

// Work is one reconcile, handed out by Get.
type Work struct {
	Key    Key
	Causes Causes
	// FailureCount is how many reconciles of the key failed in a row before this one.
	FailureCount int
	// Waited is how long the key was ready before a worker took the key.
	Waited time.Duration
}

// Next is what a reconcile asks of the next one. The zero value asks for none.
type Next struct {
	// RequeueAfter is the time until the next reconcile, if no trigger comes earlier. 0 asks for none.
	RequeueAfter time.Duration
	// IsRetried is true if the reconcile is to be repeated after RetryAfter, as after an error.
	IsRetried bool
	// RetryAfter is the time until the retry. It counts in place of RequeueAfter if IsRetried is true. 0 is at once.
	RetryAfter time.Duration
	// SkipsOwnStatus is true if the triggers of the own writes of the status ask for no reconcile.
	SkipsOwnStatus bool
}

// Add adds a trigger. After Shutdown it does nothing.
func (q *Queue) Add(t Trigger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isShutdown {
		return
	}
	now := q.tick()
	q.addCount++

	at := q.table.find(&t.Key)
	e := *at
	if t.Echo == OwnStatus {
		if e != nil && e.state == running {
			e.hasWrittenStatus = true
		}
		return
	}
	if e == nil {
		e = q.table.add(at, t.Key)
		e.needsObject = true
	}
	e.needsObject = e.needsObject && t.NeedsObject
	// The clock compares NotBefore with the present time. The difference between NotBefore and q.start would be
	// wrong after the wall clock was set.
	if wait := q.clock.Until(t.NotBefore); !t.NotBefore.IsZero() && wait > 0 {
		q.addDelayedTrigger(e, delayedTrigger{due: now.after(wait), cause: t.Cause}, now)
		return
	}
	e.causes.add(t.Cause)
	asked := classes{high: t.Priority != Low, low: t.Priority == Low}
	s := schedule{classes: asked, due: never}
	switch {
	case e.state == running && t.Echo == CertainEcho:
		e.afterEcho.merge(asked)
	case e.state == running && t.Echo == PossibleEcho:
		e.afterPossibleEcho.merge(asked)
	case e.state == running:
		e.schedule.merge(s)
	case e.state == backingOff && (t.Echo == CertainEcho || s.low):
		// The retry will see the change. The cause is kept, the time stays.
	case e.state == backingOff && t.Echo == PossibleEcho:
		if !e.hasEchoEndedBackoff {
			e.hasEchoEndedBackoff = true
			q.reschedule(e, s, now)
		}
	default:
		q.reschedule(e, s, now)
	}
}

// DropGone removes the key of an object that is gone, if all of its triggers need the object. It is for a queue
// without workers: an object that a worker has seen needs a reconcile after the object is gone.
func (q *Queue) DropGone(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.table.find(&key)
	e := *at
	if e == nil || !e.needsObject || e.state == running {
		return
	}
	if e.state == ready {
		q.ready.classes[e.class].remove(e)
	}
	q.dueHeap.remove(e)
	q.table.drop(at)
	if q.clock != nil {
		q.signalRest()
	}
}

// addDelayedTrigger records a trigger whose time has not come.
func (q *Queue) addDelayedTrigger(e *entry, t delayedTrigger, now instant) {
	e.addDelayedTrigger(t)
	if e.state != running {
		q.reschedule(e, schedule{due: e.delayedTriggers[0].due}, now)
	}
}

// Get blocks until there is work, and hands it out. It returns false when ctx ends or the
// queue is shut down. Every Work must be followed by Done.
func (q *Queue) Get(ctx context.Context) (Work, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.isShutdown && ctx.Err() == nil {
		now := q.tick()
		if e := q.ready.pick(q.isLowHeld != nil && q.isLowHeld()); e != nil {
			return q.handOut(e, now), true
		}
		c := q.idleWorkers.add()
		q.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if q.idleWorkers.remove(c) && ctx.Err() != nil {
			q.idleWorkers.wake() // another worker must take the key that this one was woken for
		}
	}
	return Work{}, false
}

// HoldLow makes the queue hand out no key of the class Low while isHeld returns true. The key of a Low trigger is
// handed out all the same if another trigger, a retry or a requeue asks for it. Get calls isHeld, which must not use
// the queue. Whoever ends the condition calls [Queue.ReleaseLow].
func (q *Queue) HoldLow(isHeld func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isLowHeld = isHeld
}

// ReleaseLow wakes the workers after the end of the condition of [Queue.HoldLow].
func (q *Queue) ReleaseLow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idleWorkers.wakeAll()
}

// handOut makes e running, and resets what e waited for.
func (q *Queue) handOut(e *entry, now instant) Work {
	q.dueHeap.remove(e)
	e.removeDue(now)
	e.state = running
	q.runningCount++
	work := Work{
		Key:          e.key,
		Causes:       e.causes,
		FailureCount: int(e.failureCount),
		Waited:       time.Duration(now - e.readyAt),
	}
	e.causes = Causes{}
	e.schedule = noSchedule()
	return work
}

// Done ends the work on key that began with Get. next is what the reconcile asks of the next one. Done does nothing for
// a key that no worker has.
func (q *Queue) Done(key Key, next Next) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.table.find(&key)
	e := *at
	if e == nil || e.state != running {
		return
	}
	q.runningCount--
	if q.clock != nil {
		defer q.signalRest()
	}
	hasRequeue := next.RequeueAfter > 0 && !next.IsRetried
	if e.hasWrittenStatus && !next.SkipsOwnStatus {
		e.causes.add(Cause{Change: "own status"})
		e.afterEcho.merge(classes{high: true})
	}
	e.hasWrittenStatus = false
	if !next.IsRetried && !hasRequeue && e.schedule.isEmpty() && e.afterEcho.isEmpty() && e.afterPossibleEcho.isEmpty() &&
		len(e.delayedTriggers) == 0 {
		q.table.drop(at)
		return
	}

	now := q.tick()
	s, afterEcho, afterPossibleEcho := e.schedule, e.afterEcho, e.afterPossibleEcho
	e.schedule, e.afterEcho, e.afterPossibleEcho = noSchedule(), classes{}, classes{}
	if len(e.delayedTriggers) > 0 {
		s.merge(schedule{due: e.delayedTriggers[0].due})
	}
	if next.IsRetried {
		// Echoes and resyncs do not count: the retry will see the changes that led to them.
		e.failureCount++
		q.retryCount++
		e.state = backingOff
		s.low = false
		if afterPossibleEcho.high && !s.high && !e.hasEchoEndedBackoff {
			s.high, e.hasEchoEndedBackoff = true, true
		}
		s.merge(schedule{due: now.after(next.RetryAfter), dueReason: byRetry})
	} else {
		e.failureCount = 0
		e.hasEchoEndedBackoff = false
		e.state = waiting
		s.classes.merge(afterEcho)
		s.classes.merge(afterPossibleEcho)
		if hasRequeue {
			s.merge(schedule{due: now.after(next.RequeueAfter), dueReason: byRequeue})
		}
	}
	q.reschedule(e, s, now)
}

// reschedule adds s to what e waits for, and puts e into the lists that follow from it. e is not
// running.
func (q *Queue) reschedule(e *entry, s schedule, now instant) {
	before := e.schedule.due
	e.schedule.merge(s)
	switch {
	case e.schedule.high:
		q.setReady(e, High, now)
	case e.schedule.due <= now:
		q.setDue(e, now)
	default:
		if e.schedule.due != before {
			q.dueHeap.put(e)
			q.arm(now)
		}
		if e.schedule.low {
			q.setReady(e, Low, now)
		}
	}
}

// setDue makes e Due, because its time has come.
func (q *Queue) setDue(e *entry, since instant) {
	if e.state == ready && e.class >= Due {
		return
	}
	switch e.schedule.dueReason {
	case byRequeue:
		e.causes.add(Cause{Change: "requeue"})
	case byRetry:
		e.causes.add(Cause{Change: "retry"})
	}
	q.setReady(e, Due, since)
}

// setReady puts e into the list of a class, unless e is in that list or in a list of a higher class. A worker could
// have taken e since the instant since.
func (q *Queue) setReady(e *entry, class Priority, since instant) {
	switch {
	case e.state == ready && e.class >= class:
		return
	case e.state == ready:
		if e.class == Low {
			q.idleWorkers.wake() // the worker that was woken for e has found no key, if Low was held
		}
		q.ready.classes[e.class].remove(e)
	default:
		e.readyAt = since
		q.idleWorkers.wake()
	}
	if class != Low {
		q.dueHeap.remove(e)
	}
	e.state, e.class = ready, class
	q.ready.classes[class].push(e)
}

// tick makes the entries Due whose time has come, and returns the time. Every operation begins
// with tick, so that an earlier due time comes first.
func (q *Queue) tick() instant {
	now := instant(q.clock.Since(q.start))
	for q.dueHeap.nearest() <= now {
		q.setDue(q.dueHeap.entries[0], q.dueHeap.nearest())
	}
	return now
}

// arm sets the timer if it would fire too late. A timer that would fire too early stays: one run of fire that
// finds nothing due is cheaper than a reset of the timer each time.
func (q *Queue) arm(now instant) {
	at := q.dueHeap.nearest()
	if at >= q.timerAt || q.isShutdown {
		return
	}
	q.timerAt = at
	if q.timer == nil {
		q.timer = time.AfterFunc(time.Duration(at-now), q.fire)
	} else {
		q.timer.Reset(time.Duration(at - now))
	}
}

// fire makes the keys Due whose time has come, and sets the timer for the next key. The timer calls fire.
func (q *Queue) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timerAt = never
	q.arm(q.tick())
}

// Shutdown makes every waiting and every later Get return false. Running keys stay running, and
// Done must still be called for them.
func (q *Queue) Shutdown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isShutdown = true
	if q.timer != nil {
		q.timer.Stop()
	}
	q.idleWorkers.wakeAll()
	q.clock.SignalRest()
}

// Stats is a snapshot of a queue.
type Stats struct {
	// Ready is the number of keys that wait for a worker. Waiting is the number of keys that wait for their time. Running
	// is the number of keys that a worker has.
	Ready, Waiting, Running int
	// OldestReady is the longest time that a ready key has been waiting.
	OldestReady time.Duration
	// Retries counts the retries that reconciles have asked for since New, and Adds counts the triggers since New.
	Retries, Adds uint64
}

// Stats returns a snapshot of the queue.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.tick()
	ready := q.ready.len()
	return Stats{
		Ready: ready, Waiting: q.table.len - ready - q.runningCount, Running: q.runningCount,
		OldestReady: time.Duration(now - q.ready.oldest(now)), Retries: q.retryCount, Adds: q.addCount,
	}
}

// RestartWaits restarts the waiting times of the keys that wait for a worker. It is for the
// queue of a standby, which has no workers before it leads.
func (q *Queue) RestartWaits() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.restartWaits(q.tick())
}

// Lock locks the queue, so that it does not change. It is for the clock, of which the queue is a member.
func (q *Queue) Lock() { q.mu.Lock() }

// Unlock unlocks the queue after Lock.
func (q *Queue) Unlock() { q.mu.Unlock() }

// IsAtRestLocked reports whether no key is ready or running, and none is due. After Shutdown a ready key does not
// count, because no worker takes it.
func (q *Queue) IsAtRestLocked() bool {
	if q.runningCount > 0 || q.isShutdown {
		return q.runningCount == 0
	}
	return q.ready.len() == 0 && q.dueHeap.nearest() > instant(q.clock.Since(q.start))
}

// IsWorkingLocked reports whether a reconcile is under way.
func (q *Queue) IsWorkingLocked() bool { return q.runningCount > 0 }

// UntilDueLocked returns the time until the next key is due. It returns false if there is none.
func (q *Queue) UntilDueLocked() (time.Duration, bool) {
	nearest := q.dueHeap.nearest()
	if nearest == never || q.isShutdown {
		return 0, false
	}
	return time.Duration(nearest) - q.clock.Since(q.start), true
}

// AfterMoveLocked makes the keys Due whose time has come because the clock was moved.
func (q *Queue) AfterMoveLocked() {
	q.timerAt = never
	q.arm(q.tick())
}

// signalRest signals the clock if the queue is at rest.
func (q *Queue) signalRest() {
	if q.IsAtRestLocked() {
		q.clock.SignalRest()
	}
}

// RetryWait is the wait for the retry after failures in a row. It grows by time, and not by the number of failures: a
// failure during the wait, such as that of a reconcile that a change has started, does not delay the retry.
//
// An example with waits of 1 s, 2 s, 4 s and so on:
//
//	at      what fails                        attempt  the retry is at
//	0 s     a reconcile                       1        1 s
//	0.3 s   a reconcile because of a change   1        1 s
//	1 s     the retry                         2        3 s
type RetryWait struct {
	// attempt is the number of waits in a row, and end is when the last of them ends.
	attempt int
	end     time.Time
}

// Next returns the time from now, when something has failed, to the retry. delay returns the wait of an attempt, from 1
// on. The time is not shorter than demanded, the wait that a server demands.
func (w *RetryWait) Next(now time.Time, demanded time.Duration, delay func(attempt int) time.Duration) time.Duration {
	rest := w.end.Sub(now)
	if rest <= 0 {
		w.attempt++
	}
	d := delay(w.attempt)
	if rest > 0 {
		d = min(d, rest)
	}
	d = max(d, demanded)
	w.end = now.Add(d)
	return d
}
