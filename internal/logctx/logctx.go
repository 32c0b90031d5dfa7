// Package logctx carries in a context what the log lines of a piece of work are about.
package logctx

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// Scope is a piece of work, such as a reconcile or a task.
type Scope interface {
	// Logger returns the logger of the program, with the attributes of the scope.
	Logger() *slog.Logger
	// LogAttrs returns the attributes of the scope.
	LogAttrs() []slog.Attr
}

// Key is the key of the Scope in a context.
type Key struct{}

// LogrKey is the key by which packages logr and klog, and that of controller-runtime, find the logger of a context. The
// value is a *slog.Logger. Package logr does not export the key.
var LogrKey = findLogrKey() //nolint:gochecknoglobals // a constant that is computed

// findLogrKey returns the key that package logr asks a context for.
func findLogrKey() any {
	asked := &keyRecorder{Context: context.Background()}
	logr.FromContextAsSlogLogger(asked)
	return asked.key
}

// keyRecorder is a context that records the last key that it was asked for.
type keyRecorder struct {
	context.Context //nolint:containedctx // the keyRecorder is a context itself
	key             any
}

// Value records key, and returns nil.
func (r *keyRecorder) Value(key any) any {
	r.key = key
	return nil
}

// From returns the scope that ctx belongs to. It reports whether there is one.
func From(ctx context.Context) (Scope, bool) {
	s, ok := ctx.Value(Key{}).(Scope)
	return s, ok
}

// With returns a context of a scope with these attributes. logger is the logger of the program.
func With(ctx context.Context, logger *slog.Logger, attributes ...slog.Attr) context.Context {
	with := slog.New(logger.Handler().WithAttrs(attributes))
	return logr.NewContextWithSlogLogger(context.WithValue(ctx, Key{}, fixed{with, attributes}), with)
}

// fixed is a Scope whose logger is made at once.
type fixed struct {
	logger     *slog.Logger
	attributes []slog.Attr
}

func (f fixed) Logger() *slog.Logger  { return f.logger }
func (f fixed) LogAttrs() []slog.Attr { return f.attributes }

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
