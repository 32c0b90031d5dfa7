package yaretest

import (
	"context"
	"io"
	"log"
	"log/slog"
	"sync"
	"testing"

	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/operator"
)

// testLog writes the log of a program to its test, until the program has ended.
type testLog struct {
	mu      sync.Mutex
	output  io.Writer
	isEnded bool
}

func newTestLog(t testing.TB) *testLog { return &testLog{output: t.Output()} }

func (l *testLog) handler() slog.Handler {
	return slog.NewTextHandler(l, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				a.Value = slog.StringValue(a.Value.Time().Format("15:04:05.000"))
			}
			return a
		},
	})
}

// Write writes text to the test. The output of a test that has ended cannot be written to.
func (l *testLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isEnded {
		return len(text), nil
	}
	return l.output.Write(text)
}

// end drops all further text.
func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isEnded = true
}

// setDefaultLogger makes a [perTestHandler] the default logger. The default logger belongs to the process, so it is set
// once.
var setDefaultLogger = sync.OnceFunc(func() {
	// SetDefault redirects package log to the default logger, and the first default logger writes
	// through package log.
	output, flags := log.Writer(), log.Flags()
	slog.SetDefault(slog.New(operator.LogHandler(perTestHandler{former: slog.Default().Handler()})))
	log.SetOutput(output)
	log.SetFlags(flags)
})

// perTestHandler passes each record to the log of the program that the context of the record names. It passes a record
// without a program to the former default handler.
type perTestHandler struct {
	former slog.Handler
	// derive holds the calls of WithAttrs and WithGroup, in their order.
	derive []func(slog.Handler) slog.Handler
}

func (h perTestHandler) handlerFor(ctx context.Context) slog.Handler {
	handler := h.former
	if log := logctx.ProgramLogger(ctx); log != nil {
		handler = log.Handler()
	}
	for _, each := range h.derive {
		handler = each(handler)
	}
	return handler
}

// Enabled implements [slog.Handler].
func (h perTestHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.handlerFor(ctx).Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h perTestHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.handlerFor(ctx).Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h perTestHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(handler slog.Handler) slog.Handler { return handler.WithAttrs(attrs) })
}

// WithGroup implements [slog.Handler].
func (h perTestHandler) WithGroup(name string) slog.Handler {
	return h.with(func(handler slog.Handler) slog.Handler { return handler.WithGroup(name) })
}

func (h perTestHandler) with(derive func(slog.Handler) slog.Handler) slog.Handler {
	return perTestHandler{h.former, append(h.derive[:len(h.derive):len(h.derive)], derive)}
}
