package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

const (
	// longCall is how long a reconcile without a timeout may run before that is logged.
	longCall = 5 * time.Minute
	// timeoutSlack is how long after the timeout a reconcile may return. A later return is logged: the
	// reconcile ignores its context.
	timeoutSlack = 10 * time.Second
	// longCallsInterval is the interval of the checks.
	longCallsInterval = time.Minute
)

// longCalls logs the calls of reconcile and cleanup functions that do not return. Such a call keeps its
// object and its worker: a second call for the object would break the promise that an object has one
// worker, and calls beyond the concurrency might never return either.
type longCalls struct {
	log *slog.Logger
	// timeout is the timeout of the controller, or 0.
	timeout     time.Duration
	concurrency int

	mu sync.Mutex
	// running holds the calls that have not returned.
	running map[kube.Key]runningCall
}

type runningCall struct {
	started time.Time
	// reportAfter is how long the call may run before the next log line.
	reportAfter time.Duration
}

func newLongCalls(log *slog.Logger, timeout time.Duration, concurrency int) *longCalls {
	return &longCalls{log: log, timeout: timeout, concurrency: concurrency, running: make(map[kube.Key]runningCall)}
}

// begin records that a call for k has started.
func (l *longCalls) begin(k kube.Key) {
	c := runningCall{started: time.Now(), reportAfter: longCall}
	if l.timeout > 0 {
		c.reportAfter = l.timeout + timeoutSlack
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[k] = c
}

// end records that the call for k has returned.
func (l *longCalls) end(k kube.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, k)
}

// takeLong returns the durations of the calls that have been running for longer than their reportAfter.
// It doubles their reportAfter.
func (l *longCalls) takeLong(now time.Time) map[kube.Key]time.Duration {
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
func (l *longCalls) run(ctx context.Context) {
	ticker := time.NewTicker(longCallsInterval)
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
