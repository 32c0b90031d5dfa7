package queue

import "slices"

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
