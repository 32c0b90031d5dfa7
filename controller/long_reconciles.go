package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// longReconcile is how long a reconcile without a timeout may run before that is logged.
	longReconcile = 5 * time.Minute
	// timeoutSlack is how long after the timeout a reconcile may return. A later return is logged: the
	// reconcile ignores its context.
	timeoutSlack = 10 * time.Second
	// longReconcilesInterval is the interval of the checks.
	longReconcilesInterval = time.Minute
)

// longReconciles logs the calls of reconcile and cleanup functions that do not return. Such a call keeps its
// object and its worker: a second call for the object would break the promise that an object has one
// worker, and calls beyond the concurrency might never return either.
type longReconciles struct {
	log *slog.Logger
	// timeout is the timeout of the controller, or 0.
	timeout     time.Duration
	concurrency int
	events      failureEvents

	mu sync.Mutex
	// running holds the calls that have not returned.
	running map[kube.Key]runningReconcile
}

type runningReconcile struct {
	object  wire.Ref
	started time.Time
	// reportAfter is how long the function may run before the next log line.
	reportAfter time.Duration
}

func newLongReconciles(log *slog.Logger, timeout time.Duration, concurrency int) *longReconciles {
	return &longReconciles{
		log: log, timeout: timeout, concurrency: concurrency, running: make(map[kube.Key]runningReconcile),
	}
}

// begin records that a call for k has started. object is the object of k.
func (l *longReconciles) begin(k kube.Key, object wire.Ref) {
	c := runningReconcile{object: object, started: time.Now(), reportAfter: longReconcile}
	if l.timeout > 0 {
		c.reportAfter = l.timeout + timeoutSlack
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[k] = c
}

// end records that the function has returned for k.
func (l *longReconciles) end(k kube.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, k)
}

// longest returns how long the call that was started first has been running, or 0.
func (l *longReconciles) longest(now time.Time) (d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.running {
		d = max(d, now.Sub(c.started))
	}
	return d
}

// takeLong returns the durations of the calls that have been running for longer than their reportAfter, by their
// objects. It returns each of them again only after twice its present duration.
func (l *longReconciles) takeLong(now time.Time) map[wire.Ref]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var long map[wire.Ref]time.Duration
	for k, c := range l.running {
		d := now.Sub(c.started)
		if d < c.reportAfter {
			continue
		}
		if long == nil {
			long = make(map[wire.Ref]time.Duration)
		}
		long[c.object] = d
		c.reportAfter = 2 * d
		l.running[k] = c
	}
	return long
}

// run logs long calls until ctx ends.
func (l *longReconciles) run(ctx context.Context) {
	ticker := time.NewTicker(longReconcilesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for object, d := range l.takeLong(now) {
				text, hint := "a reconcile does not return", "give the controller a Timeout, and pass the context to what may block"
				if l.timeout > 0 {
					text, hint = "a reconcile ignores that its context has ended", "pass the context to what may block"
				}
				l.log.Warn(text, "namespace", object.Namespace, "name", object.Name,
					"running", d.Round(time.Second), "concurrency", l.concurrency, "hint", hint)
				l.events.recordHang(object)
			}
		}
	}
}
