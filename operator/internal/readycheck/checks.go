// Package readycheck runs the readiness checks of an author. A check that panics or hangs fails, and the program goes on.
package readycheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/logctx"
)

// maxTime is how long a check may take. The kubelet waits 5 seconds for the answer, as manifests prints the probes.
const maxTime = 3 * time.Second

// errTimeout is the error of a check that has not returned after maxTime.
var errTimeout = fmt.Errorf("it has not returned after %s", maxTime)

// Checks are the readiness checks of a program. The methods may be called concurrently.
type Checks struct{ all []*check }

// New returns checks by their names. Their contexts end with ctx.
func New(ctx context.Context, checks map[string]func(context.Context) error, log *slog.Logger) Checks {
	var made Checks
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		made.all = append(made.all, &check{name: name, log: log, call: func() error {
			ctx, cancel := context.WithTimeout(ctx, maxTime)
			defer cancel()
			err := checks[name](ctx)
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
				return errTimeout
			}
			return err
		}})
	}
	return made
}

// Failures runs all checks, and returns a line for each that fails. It takes maxTime at most.
func (cs Checks) Failures() (lines []string) {
	runs := make([]*run, len(cs.all))
	for i, c := range cs.all {
		runs[i] = c.joinRun()
	}
	for i, c := range cs.all {
		err := runs[i].wait()
		c.logChange(err)
		if err != nil {
			lines = append(lines, fmt.Sprintf("the readiness check %s fails: %v", c.name, err))
		}
	}
	return lines
}

// End waits for the checks that are under way, for maxTime from their beginning at most. The context of New has ended.
func (cs Checks) End() {
	for _, c := range cs.all {
		c.mu.Lock()
		last := c.last
		c.mu.Unlock()
		if last != nil {
			_ = last.wait() // nobody asks for the result
		}
	}
}

// check is one readiness check. It has one run at a time, so that a check that hangs holds one goroutine. Requests that
// come meanwhile share the run.
type check struct {
	name string
	call func() error
	log  *slog.Logger

	mu sync.Mutex
	// last is the last run. It is nil before the first one.
	last *run
	// isFailing is true if the last result was an error.
	isFailing bool
}

// run is one call of a check.
type run struct {
	began time.Time
	// done is closed when the check has returned. Then err is its error.
	done chan struct{}
	err  error
}

// joinRun returns the run that is under way. It starts one if there is none.
func (c *check) joinRun() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		select {
		case <-c.last.done:
		default:
			return c.last
		}
	}
	c.last = &run{began: time.Now(), done: make(chan struct{})}
	go c.last.do(c.call)
	return c.last
}

// do calls the check. A panic is an error.
func (r *run) do(call func() error) {
	defer close(r.done)
	defer func() {
		if value := recover(); value != nil {
			r.err = fmt.Errorf("it panicked: %v, at %s", value, logctx.PanicSite())
		}
	}()
	r.err = call()
}

// wait returns the error of the check, or errTimeout if the check has not returned after maxTime.
func (r *run) wait() error {
	timeout := time.NewTimer(time.Until(r.began.Add(maxTime)))
	defer timeout.Stop()
	select {
	case <-r.done:
		return r.err
	case <-timeout.C:
		return errTimeout
	}
}

// logChange logs when the check begins to fail, and when it passes again.
func (c *check) logChange(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch hasFailed := err != nil; {
	case hasFailed == c.isFailing:
		return
	case hasFailed:
		c.log.Warn("a readiness check fails", "check", c.name, "error", err)
	default:
		c.log.Info("a readiness check passes again", "check", c.name)
	}
	c.isFailing = err != nil
}
