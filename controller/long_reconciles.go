package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
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

	mu sync.Mutex
	// running holds the calls that have not returned.
	running map[kube.Key]runningReconcile
}

type runningReconcile struct {
	started time.Time
	// reportAfter is how long the function may run before the next log line.
	reportAfter time.Duration
}

func newLongReconciles(log *slog.Logger, timeout time.Duration, concurrency int) *longReconciles {
	return &longReconciles{log: log, timeout: timeout, concurrency: concurrency, running: make(map[kube.Key]runningReconcile)}
}

// begin records that a call for k has started.
func (l *longReconciles) begin(k kube.Key) {
	c := runningReconcile{started: time.Now(), reportAfter: longReconcile}
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

// takeLong returns the durations of the calls that have been running for longer than their reportAfter.
// It returns each of them again only after twice its present duration.
func (l *longReconciles) takeLong(now time.Time) map[kube.Key]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var long map[kube.Key]time.Duration
	for k, c := range l.running {
		d := now.Sub(c.started)
		if d < c.reportAfter {
			continue
		}
		if long == nil {
			long = make(map[kube.Key]time.Duration)
		}
		long[k] = d
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
			for k, d := range l.takeLong(now) {
				text, hint := "a reconcile does not return", "give the controller a Timeout, and pass the context to what may block"
				if l.timeout > 0 {
					text, hint = "a reconcile ignores that its context has ended", "pass the context to what may block"
				}
				l.log.Warn(text, "namespace", k.Namespace, "name", k.Name,
					"running", d.Round(time.Second), "concurrency", l.concurrency, "hint", hint)
			}
		}
	}
}
