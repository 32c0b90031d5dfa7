package queue

// workers is those that wait for work. A sync.Cond would do, but for contexts.
type workers struct {
	asleep []chan struct{}
	// spare channels are used again. There are as many as there were workers at once.
	spare []chan struct{}
}

// sleep registers a worker. It is awake when the channel has something.
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

// wake wakes one worker, if one is asleep. It is not told for what: whoever comes first
// takes the work.
func (w *workers) wake() {
	if n := len(w.asleep); n > 0 {
		w.asleep[n-1] <- struct{}{}
		w.asleep = w.asleep[:n-1]
	}
}

// rise ends the sleep of the worker that got c, for whatever reason. It says whether the
// worker has been woken: then it is the only one who knows of the work.
func (w *workers) rise(c chan struct{}) (woken bool) {
	woken = true
	for i := range w.asleep {
		if w.asleep[i] == c {
			w.asleep = append(w.asleep[:i], w.asleep[i+1:]...)
			woken = false
			break
		}
	}
	select {
	case <-c: // if the worker rose for another reason at the same time
	default:
	}
	w.spare = append(w.spare, c)
	return woken
}
