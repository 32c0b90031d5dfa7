package engine

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

const (
	// minRunsPerProcessor and maxRunsPerProcessor bound the number of runs at a time. A run waits for
	// most of its time.
	minRunsPerProcessor = 2
	maxRunsPerProcessor = 8
	// adjustInterval is how often the limit is adjusted.
	adjustInterval = time.Second
	// The limit rises below lowLoad and falls above highLoad. Both are parts of the time for which the processors
	// were busy. A program that waits for a processor would look as if it were at rest.
	lowLoad, highLoad = 0.80, 0.92
)

// runLimiter limits how many runs are made at a time, by how busy the processors are. For example, on 2 processors
// the limit begins at 4. After a second in which the processors were busy for 60 % of the time, and 4 runs were made,
// the limit is 5. After a second with 95 % it is 4 again, and never less. Its methods are safe for concurrent use.
type runLimiter struct {
	mu             sync.Mutex
	running, limit int
	min, max       int
	// changed is signaled when a run may begin. Its lock is mu.
	changed *sync.Cond
}

// newRunLimiter returns a limiter with a fixed limit. A limit of 0 follows the load.
func newRunLimiter(parallel int) *runLimiter {
	l := &runLimiter{limit: parallel, min: parallel, max: parallel}
	l.changed = sync.NewCond(&l.mu)
	if parallel == 0 {
		n := runtime.GOMAXPROCS(0)
		l.min, l.max = minRunsPerProcessor*n, maxRunsPerProcessor*n
		l.limit = l.min
	}
	return l
}

// acquire waits until a run may begin. It reports false if ctx ends first.
func (l *runLimiter) acquire(ctx context.Context) bool {
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.running >= l.limit && ctx.Err() == nil {
		l.changed.Wait()
	}
	if ctx.Err() != nil {
		return false
	}
	l.running++
	return true
}

// release records that a run has ended.
func (l *runLimiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.changed.Broadcast()
}

// adjustToLoad adjusts the limit to the load until ctx ends. measure returns the part of the time for which
// the processors were busy since its last call. It reports false if the system does not show the load.
func (l *runLimiter) adjustToLoad(ctx context.Context, measure func() (busy float64, ok bool)) {
	if l.min == l.max {
		return
	}
	measure()
	for clock.SleepReal(ctx, adjustInterval) == nil {
		busy, ok := measure()
		if !ok {
			return
		}
		l.adjust(busy)
	}
}

// adjust changes the limit by one if the load is low or high.
func (l *runLimiter) adjust(busy float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case busy < lowLoad && l.running == l.limit && l.limit < l.max:
		l.limit++
		l.changed.Broadcast()
	case busy > highLoad && l.limit > l.min:
		l.limit--
	}
}
