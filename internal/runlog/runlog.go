// Package runlog passes a logger to the programs of one process that run in tests, each with its
// own.
package runlog

import (
	"context"
	"log/slog"
)

type contextKey struct{}

// With returns a context that carries the logger of a program.
func With(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, contextKey{}, log)
}

// From returns the logger that ctx carries, or nil.
func From(ctx context.Context) *slog.Logger {
	log, _ := ctx.Value(contextKey{}).(*slog.Logger)
	return log
}
