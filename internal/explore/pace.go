package explore

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

const (
	// fewestRunsPerProcessor and mostRunsPerProcessor bound the number of runs at a time. A run waits for
	// most of its time.
	fewestRunsPerProcessor = 2
	mostRunsPerProcessor   = 8
	// paceInterval is how often the number of runs is adjusted.
	paceInterval = time.Second
	// More runs begin while the processors are busy for less than the lower part of the time, and fewer
	// while they are busy for more than the upper one. A program that waits for a processor would
	// look like one at rest.
	lowLoad, highLoad = 0.80, 0.92
)

// pace bounds how many runs are made at a time, by how busy the processors are.
type pace struct {
	mu             sync.Mutex
	running, limit int
	fewest, most   int
	// changed is closed, and replaced, when a run may begin.
	changed chan struct{}
}

// newPace returns a pace with a fixed number of runs, or, for 0, a pace that follows the load.
func newPace(parallel int) *pace {
	p := &pace{limit: parallel, fewest: parallel, most: parallel, changed: make(chan struct{})}
	if parallel == 0 {
		n := runtime.GOMAXPROCS(0)
		p.fewest, p.most = fewestRunsPerProcessor*n, mostRunsPerProcessor*n
		p.limit = p.fewest
	}
	return p
}

// begin waits until a run may begin. It reports false if ctx ends first.
func (p *pace) begin(ctx context.Context) bool {
	for ctx.Err() == nil {
		p.mu.Lock()
		if p.running < p.limit {
			p.running++
			p.mu.Unlock()
			return true
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// end records that a run has ended.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.announceLocked()
}

func (p *pace) announceLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// follow adjusts the limit to the load until ctx ends. measure returns the part of the time for which
// the processors were busy since its last call. It reports false if the system does not show the load.
func (p *pace) follow(ctx context.Context, measure func() (busy float64, ok bool)) {
	if p.fewest == p.most {
		return
	}
	measure()
	for clock.SleepReal(ctx, paceInterval) == nil {
		busy, ok := measure()
		if !ok {
			return
		}
		p.adjust(busy)
	}
}

// adjust changes the limit by one, if the load asks for it.
func (p *pace) adjust(busy float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case busy < lowLoad && p.running == p.limit && p.limit < p.most:
		p.limit++
		p.announceLocked()
	case busy > highLoad && p.limit > p.fewest:
		p.limit--
	}
}
