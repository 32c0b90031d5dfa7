package migration

import (
	"context"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// pacer limits the rate of writes. One goroutine uses it.
type pacer struct {
	// interval is the time between two writes.
	interval time.Duration
	// next is when the next write may begin.
	next time.Time
}

// wait returns when the next write may begin.
func (p *pacer) wait(ctx context.Context) error {
	now := time.Now()
	delay := max(0, p.next.Sub(now))
	p.next = now.Add(delay + p.interval)
	return clock.SleepReal(ctx, delay)
}
