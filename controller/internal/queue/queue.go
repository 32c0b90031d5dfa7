package queue

import (
	"context"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// The guaranteed share of a class is one of so many reconciles, while the class has work. High
// has the rest.
const (
	lowShare = 5
	dueShare = 3
)

// Queue is the scheduler of one controller. It is safe for concurrent use.
type Queue struct {
	mu sync.Mutex

	// table holds every key that is running or has a next reconcile, and no other.
	table table

	// ready holds the keys that a worker can take, by class, in the order in which they came
	// into it. Each of them is in one list only, and none is running.
	ready [3]list

	// delayed holds the keys that become Due by themselves when their time comes. The keys that
	// are not in ready have to wait until then. None is running.
	delayed delayed

	// timer fires when the nearest of delayed is due. timerAt is when it fires: not later than the
	// nearest unless the clock was moved, and the instant never if the timer is not set.
	timer   *time.Timer
	timerAt instant

	// workers wait only while nothing is ready: each key that becomes ready wakes one.
	workers workers

	// overtaken is, for each class, how many reconciles of classes above were handed out in a
	// row while the class had work.
	overtaken [2]int

	running  int
	shutdown bool

	retries, adds uint64

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

// Item is one reconcile, handed out by Get.
type Item struct {
	Key     Key
	Causes  Causes
	Attempt int           // how many reconciles of this key failed in a row before this one
	Waited  time.Duration // how long the key was ready before a worker took it
}

// Outcome is what a reconcile asks of the next one.
type Outcome struct {
	RequeueAfter time.Duration // the time until the next reconcile, if no trigger comes earlier; 0: none
	Failed       bool          // the reconcile ended with an error
	RetryAfter   time.Duration // with Failed, in place of RequeueAfter; 0: at once
	Forget       bool          // the object is gone: neither requeue nor retry
}

// Add adds a trigger. After Shutdown it does nothing.
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
	// Not by the distance from start: a time without a monotonic reading is about the wall
	// clock, which may have been set since.
	if wait := q.clock.Until(t.NotBefore); !t.NotBefore.IsZero() && wait > 0 {
		q.addDelayed(e, delayedTrigger{due: now.after(wait), cause: t.Cause}, now)
		return
	}
	e.causes.add(t.Cause)
	w := wish{high: t.Priority != Low, low: t.Priority == Low, due: never}
	switch {
	case e.state == running && t.Echo == IsEcho:
		e.echo.merge(w)
	case e.state == running && t.Echo == MaybeEcho:
		e.maybe.merge(w)
	case e.state == running:
		e.next.merge(w)
	case e.state == backingOff && (t.Echo == IsEcho || w.low):
		// The retry will see the change. The cause is kept, the time stays.
	case e.state == backingOff && t.Echo == MaybeEcho:
		if !e.isDoubtSpent {
			e.isDoubtSpent = true
			q.schedule(e, w, now)
		}
	default:
		q.schedule(e, w, now)
	}
}

// addDelayed records a trigger whose time has not come.
func (q *Queue) addDelayed(e *entry, t delayedTrigger, now instant) {
	e.addLater(t)
	if e.state != running {
		q.schedule(e, wish{due: e.later[0].due}, now)
	}
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
			q.workers.wake() // another worker must take the key that this one was woken for
		}
	}
	return Item{}, false
}

// pick takes the next key out of ready. It returns nil if there is none.
func (q *Queue) pick() *entry {
	class := High
	for class > Low && q.ready[class].len == 0 {
		class--
	}
	switch {
	case q.ready[Low].len > 0 && q.overtaken[Low] >= lowShare-1:
		class = Low
	case q.ready[Due].len > 0 && q.overtaken[Due] >= dueShare-1:
		class = Due
	}
	for c := range q.overtaken {
		if q.ready[c].len == 0 || Priority(c) >= class {
			q.overtaken[c] = 0
		} else {
			q.overtaken[c]++
		}
	}
	e := q.ready[class].first
	if e != nil {
		q.ready[class].remove(e)
	}
	return e
}

// handOut makes e running, and resets what e waited for.
func (q *Queue) handOut(e *entry, now instant) Item {
	q.delayed.remove(e)
	e.answerLater(now)
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
	if q.clock != nil {
		defer q.signalRest()
	}
	failed := o.Failed && !o.Forget
	requeue := o.RequeueAfter > 0 && !o.Failed && !o.Forget
	if !failed && !requeue && e.next.isEmpty() && e.echo.isEmpty() && e.maybe.isEmpty() && len(e.later) == 0 {
		q.table.drop(at)
		return
	}

	now := q.tick()
	w, echo, maybe := e.next, e.echo, e.maybe
	e.next, e.echo, e.maybe = noWish(), noWish(), noWish()
	if len(e.later) > 0 {
		w.merge(wish{due: e.later[0].due})
	}
	if failed {
		// Echoes and resyncs do not count: the retry will see what they are about.
		e.failures++
		q.retries++
		e.state = backingOff
		w.low = false
		if maybe.high && !w.high && !e.isDoubtSpent {
			w.high, e.isDoubtSpent = true, true
		}
		w.merge(wish{due: now.after(o.RetryAfter), why: byRetry})
	} else {
		e.failures = 0
		e.isDoubtSpent = false
		e.state = waiting
		w.merge(echo)
		w.merge(maybe)
		if requeue {
			w.merge(wish{due: now.after(o.RequeueAfter), why: byRequeue})
		}
	}
	q.schedule(e, w, now)
}

// schedule adds w to what e waits for, and puts e into the lists that follow from it. e is not
// running.
func (q *Queue) schedule(e *entry, w wish, now instant) {
	before := e.next.due
	e.next.merge(w)
	switch {
	case e.next.high:
		q.setReady(e, High, now)
	case e.next.due <= now:
		q.setDue(e, now)
	default:
		if e.next.due != before {
			q.delayed.put(e)
			q.arm(now)
		}
		if e.next.low {
			q.setReady(e, Low, now)
		}
	}
}

// setDue makes e Due, because its time has come.
func (q *Queue) setDue(e *entry, since instant) {
	if e.state == ready && e.class >= Due {
		return
	}
	switch e.next.why {
	case byRequeue:
		e.causes.add(Cause{Change: "requeue"})
	case byRetry:
		e.causes.add(Cause{Change: "retry"})
	}
	q.setReady(e, Due, since)
}

// setReady puts e into the list of a class, unless e is in that list or one above. A worker
// could have taken e since then.
func (q *Queue) setReady(e *entry, class Priority, since instant) {
	switch {
	case e.state == ready && e.class >= class:
		return
	case e.state == ready:
		q.ready[e.class].remove(e)
	default:
		e.readyAt = since
		q.workers.wake()
	}
	if class != Low {
		q.delayed.remove(e)
	}
	e.state, e.class = ready, class
	q.ready[class].push(e)
}

// tick makes the entries Due whose time has come, and returns the time. Every operation begins
// with tick, so that an earlier due time comes first.
func (q *Queue) tick() instant {
	now := instant(q.clock.Since(q.start))
	for q.delayed.nearest() <= now {
		q.setDue(q.delayed.entries[0], q.delayed.nearest())
	}
	return now
}

// arm sets the timer if it would fire too late. A timer that would fire too early stays: it is
// cheaper to find nothing due once than to reset the timer each time that a wait ends early.
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

// Shutdown makes every waiting and every later Get return false. Running keys stay running, and
// Done must still be called for them.
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
	q.clock.SignalRest()
}

// after returns the instant d after i, or i if d is negative.
func (i instant) after(d time.Duration) instant {
	d = max(d, 0)
	if d >= time.Duration(never-i) {
		return never - 1
	}
	return i + instant(d)
}
