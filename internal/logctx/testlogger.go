package logctx

import (
	"context"
	"log/slog"
)

type programKey struct{}

// WithProgramLogger returns a context that carries the logger of a program. Several programs of one
// process, as tests run them, log each to its own logger.
func WithProgramLogger(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, programKey{}, log)
}

// ProgramLogger returns the logger of the program that ctx carries, or nil.
func ProgramLogger(ctx context.Context) *slog.Logger {
	log, _ := ctx.Value(programKey{}).(*slog.Logger)
	return log
}
