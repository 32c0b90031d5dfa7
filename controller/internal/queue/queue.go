package queue

import (
	"context"
	"sync"
	"time"
)

// lowShare is the guaranteed share of Low: one of so many rounds, while it has work.
const lowShare = 5

// Queue is the scheduler of one controller.
type Queue struct {
	mu sync.Mutex

	// table holds every key that is running or has a next round, and no other.
	table table

	// ready holds the keys that a worker can take, by priority, in the order in which they
	// became ready. Each is in one of the two and none is running.
	ready [2]list

	// delayed holds the keys that become High by themselves when their time comes. Those in
	// it that are not in ready have to wait until then. None is running.
	delayed delayed

	// timer fires when the nearest of delayed is due. timerAt is when that will be, never
	// later than the nearest; never if it is not set.
	timer   *time.Timer
	timerAt instant

	// workers wait only while nothing is ready: whatever becomes ready wakes one.
	workers workers

	// overtaken is how many rounds of High were handed out in a row while Low had work.
	overtaken int

	running  int
	shutdown bool

	retries, adds uint64

	// start is what instants are counted from.
	start time.Time
}

// New returns an empty queue.
func New() *Queue {
	return &Queue{
		table:   newTable(),
		timerAt: never,
		start:   time.Now(),
	}
}

// Item is one round of work, handed out by Get.
type Item struct {
	Key     Key
	Causes  Causes
	Attempt int           // how many rounds of this key failed in a row before this one
	Waited  time.Duration // how long the key was ready before a worker took it
}

// Outcome is what a round says about the next one.
type Outcome struct {
	RequeueAfter time.Duration // run again then, if nothing asks for it before; 0: no
	Failed       bool          // the round ended with an error
	RetryAfter   time.Duration // with Failed, in place of RequeueAfter; 0: at once
	Forget       bool          // the object is gone: neither requeue nor retry
}

// Add notes a trigger. After Shutdown it does nothing.
func (q *Queue) Add(t Trigger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown {
		return
	}
	now := q.tick()
	q.adds++

	at := q.table.find(&t.Key)
	e := *at
	if e == nil {
		e = q.table.add(at, t.Key)
	}
	e.causes.add(t.Cause)
	w := wishOf(&t, now)
	switch {
	case e.state == running && t.Echo:
		e.echo.merge(w)
	case e.state == running:
		e.next.merge(w)
	case e.state == backingOff && t.Echo:
		// The retry will see what we wrote. The cause is noted, the time stays.
	default:
		q.schedule(e, w, now)
	}
}

// wishOf returns what t asks for.
func wishOf(t *Trigger, now instant) wish {
	if !t.NotBefore.IsZero() {
		// Not by the distance from start: a time without a monotonic reading is about the
		// wall clock, which may have been set since.
		if wait := time.Until(t.NotBefore); wait > 0 {
			return wish{due: now.after(wait)}
		}
	}
	if t.Priority == Low {
		return wish{low: true, due: never}
	}
	return wish{due: now}
}

// Get blocks until there is work, and hands it out. It returns false when ctx ends or the
// queue is shut down. Every Item must be followed by Done.
func (q *Queue) Get(ctx context.Context) (Item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.shutdown && ctx.Err() == nil {
		now := q.tick()
		if e := q.pick(); e != nil {
			return q.handOut(e, now), true
		}
		c := q.workers.sleep()
		q.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if q.workers.rise(c) && ctx.Err() != nil {
			q.workers.wake() // somebody else must take what this one was woken for
		}
	}
	return Item{}, false
}

// pick takes the next key out of ready. It returns nil if there is none.
func (q *Queue) pick() *entry {
	low, high := &q.ready[Low], &q.ready[High]
	from := high
	switch {
	case low.len == 0:
		q.overtaken = 0
	case high.len == 0 || q.overtaken == lowShare-1:
		from = low
		q.overtaken = 0
	default:
		q.overtaken++
	}
	e := from.first
	if e != nil {
		from.remove(e)
	}
	return e
}

// handOut makes e running and resets what was wished for.
func (q *Queue) handOut(e *entry, now instant) Item {
	q.delayed.remove(e)
	e.state = running
	q.running++
	item := Item{
		Key:     e.key,
		Causes:  e.causes,
		Attempt: e.failures,
		Waited:  time.Duration(now - e.readyAt),
	}
	e.causes = Causes{}
	e.next = noWish()
	return item
}

// Done ends the work on key that began with Get. For a key that is not being worked on it
// does nothing.
func (q *Queue) Done(key Key, o Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.table.find(&key)
	e := *at
	if e == nil || e.state != running {
		return
	}
	q.running--
	failed := o.Failed && !o.Forget
	requeue := o.RequeueAfter > 0 && !o.Failed && !o.Forget
	if !failed && !requeue && e.next.empty() && e.echo.empty() {
		q.table.drop(at)
		return
	}

	now := q.tick()
	w, echo := e.next, e.echo
	e.next, e.echo = noWish(), noWish()
	if failed {
		// echo does not count: the retry will see what we wrote.
		e.failures++
		q.retries++
		e.state = backingOff
		w.merge(wish{due: now.after(o.RetryAfter), why: byRetry})
	} else {
		e.failures = 0
		e.state = waiting
		w.merge(echo)
		if requeue {
			w.merge(wish{due: now.after(o.RequeueAfter), why: byRequeue})
		}
	}
	q.schedule(e, w, now)
}

// schedule puts e, which is not running, where w and what it already waits for want it.
func (q *Queue) schedule(e *entry, w wish, now instant) {
	before := e.next.due
	e.next.merge(w)
	switch {
	case e.state == readyHigh:
	case e.next.due <= now:
		q.promote(e, now)
	default:
		if e.next.due != before {
			q.delayed.put(e)
			q.arm(now)
		}
		if e.next.low && e.state != readyLow {
			e.state = readyLow
			e.readyAt = now
			q.ready[Low].push(e)
			q.workers.wake()
		}
	}
}

// promote makes e High, because a trigger wants it or because its time has come. It could
// have been taken since then.
func (q *Queue) promote(e *entry, since instant) {
	q.delayed.remove(e)
	switch e.next.why {
	case byRequeue:
		e.causes.add(Cause{Change: "requeue"})
	case byRetry:
		e.causes.add(Cause{Change: "retry"})
	}
	if e.state == readyLow {
		q.ready[Low].remove(e)
	} else {
		e.readyAt = since
		q.workers.wake()
	}
	e.state = readyHigh
	q.ready[High].push(e)
}

// tick promotes what has come due, and returns the time. Every operation begins with it, so
// that what was due before comes first.
func (q *Queue) tick() instant {
	now := instant(time.Since(q.start))
	for q.delayed.nearest() <= now {
		q.promote(q.delayed.entries[0], q.delayed.nearest())
	}
	return now
}

// arm sets the timer, if it is not early enough. It is never set back: to find nothing due
// once is cheaper than to set it each time that a wait ends early.
func (q *Queue) arm(now instant) {
	at := q.delayed.nearest()
	if at >= q.timerAt || q.shutdown {
		return
	}
	q.timerAt = at
	if q.timer == nil {
		q.timer = time.AfterFunc(time.Duration(at-now), q.fire)
	} else {
		q.timer.Reset(time.Duration(at - now))
	}
}

func (q *Queue) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timerAt = never
	q.arm(q.tick())
}

// Shutdown makes every Get return false, those that are waiting and those to come. Running
// work is not touched; it is still to be ended by Done.
func (q *Queue) Shutdown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutdown = true
	if q.timer != nil {
		q.timer.Stop()
	}
	for len(q.workers.asleep) > 0 {
		q.workers.wake()
	}
}

// after returns the time d later, now if d is negative.
func (i instant) after(d time.Duration) instant {
	d = max(d, 0)
	if d >= time.Duration(never-i) {
		return never - 1
	}
	return i + instant(d)
}
