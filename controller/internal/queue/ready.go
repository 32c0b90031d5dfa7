package queue

import "slices"

// While a class has work, it gets at least one of as many reconciles as its constant says: Low one of five, and Due one
// of three of those that are not Low. High has the rest. For example, if all classes have work, the order is
// H H D H L H D H H L D H.
const (
	lowShare = 5
	dueShare = 3
)

// readyKeys holds the keys that a worker can take, and picks the next key.
type readyKeys struct {
	// classes holds the keys of each class, in the order in which they came into it. Each key is in one
	// list only, and none is running.
	classes [3]list
	// overtaken is, for each class, how many reconciles of classes above were handed out since the last one of the class,
	// while the class had work.
	overtaken [2]int
}

func (r *readyKeys) len() int { return r.classes[Low].len + r.classes[Due].len + r.classes[High].len }

// pick removes the next key and returns it. It returns nil if there is none. isLowHeld is true if the keys of Low must
// wait.
func (r *readyKeys) pick(isLowHeld bool) *entry {
	class := High
	for class > Low && r.classes[class].len == 0 {
		class--
	}
	if class == Low && isLowHeld {
		return nil
	}
	switch {
	case !isLowHeld && r.classes[Low].len > 0 && r.overtaken[Low] >= lowShare-1:
		class = Low
	case r.classes[Due].len > 0 && r.overtaken[Due] >= dueShare-1:
		class = Due
	}
	for c := range r.overtaken {
		switch {
		case r.classes[c].len == 0 || Priority(c) == class:
			r.overtaken[c] = 0
		case Priority(c) < class:
			r.overtaken[c]++
		}
	}
	e := r.classes[class].first
	if e != nil {
		r.classes[class].remove(e)
	}
	return e
}

// oldest returns since when the key that has waited longest is ready, or now if there is none.
func (r *readyKeys) oldest(now instant) instant {
	oldest := now
	if e := r.classes[Low].first; e != nil {
		oldest = e.readyAt
	}
	// An entry that came from a list below stands behind younger ones.
	for _, class := range []Priority{Due, High} {
		for e := r.classes[class].first; e != nil; e = e.next {
			oldest = min(oldest, e.readyAt)
		}
	}
	return oldest
}

// restartWaits makes all keys ready since now.
func (r *readyKeys) restartWaits(now instant) {
	for _, class := range []Priority{Low, Due, High} {
		for e := r.classes[class].first; e != nil; e = e.next {
			e.readyAt = now
		}
	}
}

// list is a list of entries in the order in which they came. Any entry can be removed.
type list struct {
	first, last *entry
	len         int
}

func (l *list) push(e *entry) {
	e.prev, e.next = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.len++
}

func (l *list) remove(e *entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// idleWorkers holds the workers that wait for work. It is a sync.Cond whose waits can end with a
// context.
type idleWorkers struct {
	// waiting holds one channel for each waiting worker.
	waiting []chan struct{}
	// spare holds channels to use again. There are never more than there were workers at once.
	spare []chan struct{}
}

// add adds a worker. The returned channel receives a value when the worker is woken.
func (w *idleWorkers) add() chan struct{} {
	var c chan struct{}
	if n := len(w.spare); n > 0 {
		c, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		c = make(chan struct{}, 1)
	}
	w.waiting = append(w.waiting, c)
	return c
}

// wake wakes one worker, if one waits. Another worker may take the work before the woken worker
// does.
func (w *idleWorkers) wake() {
	if n := len(w.waiting); n > 0 {
		w.waiting[n-1] <- struct{}{}
		w.waiting = w.waiting[:n-1]
	}
}

// wakeAll wakes all workers.
func (w *idleWorkers) wakeAll() {
	for len(w.waiting) > 0 {
		w.wake()
	}
}

// remove removes the worker to which add returned c. It reports whether wake has woken the worker.
// If so, no other worker has been woken for the same work.
func (w *idleWorkers) remove(c chan struct{}) (isWoken bool) {
	i := slices.Index(w.waiting, c)
	if i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	select {
	case <-c: // if the worker has stopped waiting for another reason at the same time
	default:
	}
	w.spare = append(w.spare, c)
	return i < 0
}
