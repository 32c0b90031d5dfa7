// Package sleep has the wait that package time lacks.
package sleep

import (
	"context"
	"time"
)

// For waits until d has passed or ctx has ended. It returns the cause of the end of ctx, or nil if
// ctx has not ended.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
