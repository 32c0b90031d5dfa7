package operator

import (
	"context"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"k8s.io/klog/v2" //nolint:depguard // what libraries log by klog goes to the log of the program

	"github.com/yare-go/yare/internal/logctx"
)

// LogHandler returns a handler that passes records to next, with the attributes of their context. These are
// the controller, the object and the ID of a reconcile, or the name of a task (see [controller.Log]). So
// slog.InfoContext(ctx, …) has the same attributes as controller.Log(ctx).Info(…). After WithGroup the
// attributes belong to the group. [Main] installs such a handler as the default of package slog; [Run] does
// not.
func LogHandler(next slog.Handler) slog.Handler {
	if h, ok := next.(logHandler); ok {
		return h
	}
	return logHandler{next}
}

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if s, ok := logctx.From(ctx); ok {
		r = r.Clone()
		r.AddAttrs(s.LogAttrs()...)
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attributes)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}

// withoutLogHandler returns a logger without [LogHandler], for lines that have the attributes already.
func withoutLogHandler(logger *slog.Logger) *slog.Logger {
	if h, ok := logger.Handler().(logHandler); ok {
		return slog.New(h.Handler)
	}
	return logger
}

// newLogHandler returns a handler that writes text for people if w is a terminal, and JSON
// otherwise. JSON has durations in seconds.
func newLogHandler(w io.Writer, level slog.Leveler) slog.Handler {
	if logctx.IsTerminal(w) {
		return logctx.NewTextHandler(w, level)
	}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds})
}

// inSeconds returns an attribute with the number of seconds in place of a duration, as the metrics
// have them.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		// Unlike Seconds, one division rounds to the nearest number: 7.81, and not 7.8100000000000005.
		a.Value = slog.Float64Value(float64(a.Value.Duration()) / float64(time.Second))
	}
	return a
}

// defaultLoggerMu guards the changes of the default loggers, which belong to the process. A test can run
// several programs in one process, and klog does not guard its logger.
var defaultLoggerMu sync.Mutex //nolint:gochecknoglobals // what it guards is global

// setDefaultLogger makes h, with what [LogHandler] adds, the default of the packages slog, log and klog. So
// the lines of the author and of Kubernetes' libraries look alike. restore sets the previous defaults.
func setDefaultLogger(h slog.Handler) (restore func()) {
	defaultLoggerMu.Lock()
	defer defaultLoggerMu.Unlock()
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	logger := slog.New(LogHandler(h))
	slog.SetDefault(logger)
	klog.SetSlogLogger(logger)
	return func() {
		defaultLoggerMu.Lock()
		defer defaultLoggerMu.Unlock()
		klog.ClearLogger()
		slog.SetDefault(before)
		// The first default of slog writes through package log. SetDefault has changed the
		// output of package log, and does not change it back.
		log.SetOutput(output)
		log.SetFlags(flags)
	}
}
