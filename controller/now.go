package controller

import (
	"context"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// Now returns the time by which requeues, delayed triggers and [Every] are due. ctx is the context
// of a reconcile, a cleanup, a source or a part. Now is [time.Now] unless a test moves the time of
// the program forward: see Advance in package yaretest.
func Now(ctx context.Context) time.Time { return clock.From(ctx).Now() }
