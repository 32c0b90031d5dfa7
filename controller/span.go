package controller

import (
	"context"
	"log/slog"
)

// startSpan begins the span of a reconcile or a cleanup, which [engine.finish] ends. It returns ctx
// if nobody traces.
func (e *engine) startSpan(ctx context.Context, r *reconciliation, isCleanup bool) context.Context {
	if e.runtime.Tracer == nil {
		return ctx
	}
	work := "reconcile "
	if isCleanup {
		work = "cleanup "
	}
	ctx, r.endSpan = e.runtime.Tracer.Start(ctx, work+e.name, append(r.call.LogAttrs(), slog.String("cause", r.result.Causes))...)
	return ctx
}
