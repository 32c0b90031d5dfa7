package logctx

import (
	"context"
	"log/slog"
)

type programKey struct{}

// WithProgramLogger returns a context that carries the logger of a program. A test can run several programs in
// one process, each with another logger.
func WithProgramLogger(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, programKey{}, log)
}

// ProgramLogger returns the logger of the program that ctx carries, or nil.
func ProgramLogger(ctx context.Context) *slog.Logger {
	log, _ := ctx.Value(programKey{}).(*slog.Logger)
	return log
}
