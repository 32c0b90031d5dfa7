package clock

import (
	"context"
	"time"
)

// SleepReal waits in real time until d has passed or ctx has ended. It returns the cause of the end of ctx, or nil if
// ctx has not ended.
func SleepReal(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
