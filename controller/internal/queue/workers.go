package queue

import "slices"

// workers holds the workers that wait for work. It is a sync.Cond whose waits can end with a
// context.
type workers struct {
	asleep []chan struct{}
	// spare channels are used again. There are as many as there were workers at once.
	spare []chan struct{}
}

// sleep registers a waiting worker. The returned channel receives a value when the worker is woken.
func (w *workers) sleep() chan struct{} {
	var c chan struct{}
	if n := len(w.spare); n > 0 {
		c, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		c = make(chan struct{}, 1)
	}
	w.asleep = append(w.asleep, c)
	return c
}

// wake wakes one worker, if one is asleep. Another worker may take the work before the woken worker
// does.
func (w *workers) wake() {
	if n := len(w.asleep); n > 0 {
		w.asleep[n-1] <- struct{}{}
		w.asleep = w.asleep[:n-1]
	}
}

// wakeAll wakes all workers.
func (w *workers) wakeAll() {
	for len(w.asleep) > 0 {
		w.wake()
	}
}

// remove removes the waiting worker that got c. It reports whether wake has woken the worker.
// Then no other worker has been woken for the same work.
func (w *workers) remove(c chan struct{}) (isWoken bool) {
	i := slices.Index(w.asleep, c)
	if i >= 0 {
		w.asleep = slices.Delete(w.asleep, i, i+1)
	}
	select {
	case <-c: // if the worker has stopped waiting for another reason at the same time
	default:
	}
	w.spare = append(w.spare, c)
	return i < 0
}
