// Package readycheck runs the readiness checks of an author. A check that panics or hangs fails, and the program goes on.
package readycheck

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/internal/logctx"
)

// maxTime is how long a check may take. The kubelet waits 5 seconds for the answer, as manifests prints the probes.
const maxTime = 3 * time.Second

// errTimeout is the error of a check that has not returned after maxTime.
var errTimeout = fmt.Errorf("it has not returned after %s", maxTime)

// Checks are the readiness checks of a program. The methods may be called concurrently.
type Checks struct {
	all []*check
	// newContext returns the context of all checks for one request.
	newContext func() (context.Context, context.CancelFunc)
}

// New returns checks by their names. Their contexts end with ctx.
func New(ctx context.Context, checks map[string]func(context.Context) error, log *slog.Logger) Checks {
	made := Checks{newContext: func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, maxTime) }}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		made.all = append(made.all, &check{name: name, call: checks[name], log: log, busy: make(chan struct{}, 1)})
	}
	return made
}

// Failures runs all checks, and returns a line for each that fails. It takes maxTime at most.
func (cs Checks) Failures() (lines []string) {
	if len(cs.all) == 0 {
		return nil
	}
	ctx, cancel := cs.newContext()
	defer cancel()
	errs := make([]error, len(cs.all))
	var running sync.WaitGroup
	for i, c := range cs.all {
		running.Go(func() { errs[i] = c.run(ctx) })
	}
	running.Wait()
	for i, c := range cs.all {
		c.logChange(errs[i])
		if errs[i] != nil {
			lines = append(lines, fmt.Sprintf("the readiness check %s fails: %v", c.name, errs[i]))
		}
	}
	return lines
}

// End waits for the checks that are under way, for maxTime at most. The context of New has ended.
func (cs Checks) End() {
	timeout, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	for _, c := range cs.all {
		select {
		case c.busy <- struct{}{}:
		case <-timeout.Done():
		}
	}
}

// check is one readiness check.
type check struct {
	name string
	call func(context.Context) error
	log  *slog.Logger
	// busy has an element while the check is under way, so that a check that hangs holds one goroutine.
	busy chan struct{}
	// isFailing is true if the last result was an error.
	isFailing atomic.Bool
}

// run calls the check, and returns its error. A panic is an error, and so is the end of ctx.
func (c *check) run(ctx context.Context) error {
	select {
	case c.busy <- struct{}{}:
	case <-ctx.Done():
		return errTimeout
	}
	result := make(chan error, 1)
	go func() {
		defer func() {
			if value := recover(); value != nil {
				result <- fmt.Errorf("it panicked: %v, at %s", value, logctx.PanicSite())
			}
			<-c.busy
		}()
		result <- c.call(ctx)
	}()
	select {
	case err := <-result:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return errTimeout
}

// logChange logs when the check begins to fail, and when it passes again.
func (c *check) logChange(err error) {
	switch wasFailing := c.isFailing.Swap(err != nil); {
	case err != nil && !wasFailing:
		c.log.Warn("a readiness check fails", "check", c.name, "error", err)
	case err == nil && wasFailing:
		c.log.Info("a readiness check passes again", "check", c.name)
	}
}
