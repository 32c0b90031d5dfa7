package controller

import (
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

const (
	// shortestWait is the shortest time to the next reconcile that a function of the author can ask for.
	shortestWait = 10 * time.Millisecond
	// unitlessBelow is the bound of the waits that can be numbers without a unit.
	unitlessBelow = time.Millisecond
	// unitlessCount is the number of equal waits in a row that show a number without a unit.
	unitlessCount = 3
)

// requeueWaits bounds the waits that reconciles return, so that requeues are never a busy loop. No wait is shorter than
// shortestWait. A number without a unit, such as that of RequeueAfter(30), counts as one second. It is known by the
// same wait below unitlessBelow that an object returns again and again: a computed wait, such as the time until a
// moment, differs each time.
//
// Example: the reconciles of web return 30ns each time. The waits are 10ms, 10ms, 1s, 1s and so on.
type requeueWaits struct {
	log *slog.Logger

	mu sync.Mutex
	// byKey holds the objects whose last wait was below unitlessBelow.
	byKey    map[kube.Key]repeatedWait
	isLogged bool
}

// repeatedWait is a wait that the last reconciles of an object have returned, and their number.
type repeatedWait struct {
	wait  time.Duration
	count int
}

func newRequeueWaits(log *slog.Logger) *requeueWaits {
	return &requeueWaits{log: log, byKey: make(map[kube.Key]repeatedWait)}
}

// bounded returns the wait for a reconcile of k that has returned d, which is 0 for none.
func (w *requeueWaits) bounded(k kube.Key, d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d == 0 || d >= unitlessBelow {
		delete(w.byKey, k)
		if d == 0 {
			return 0
		}
		return max(d, shortestWait)
	}
	last := w.byKey[k]
	if last.wait != d {
		last = repeatedWait{wait: d}
	}
	last.count = min(last.count+1, unitlessCount)
	w.byKey[k] = last
	if last.count < unitlessCount {
		return shortestWait
	}
	if !w.isLogged {
		w.isLogged = true
		w.log.Warn("the reconciles of an object return the same very short wait again and again: it is a number without a unit, and counts as one second",
			"namespace", k.Namespace, "name", k.Name, "wait", d,
			"hint", "write a unit, such as controller.RequeueAfter(30 * time.Second)")
	}
	return time.Second
}

// forget forgets an object that is gone.
func (w *requeueWaits) forget(k kube.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey, k)
}
