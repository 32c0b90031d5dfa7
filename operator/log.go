package operator

import (
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// newLogger writes for a reader on a terminal, and JSON for anything else.
func newLogger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		plain := os.Getenv("NO_COLOR") != "" // empty is as good as unset: https://no-color.org
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: plain}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// setDefaultLogger lets the author's own slog calls go the same way, and what is logged by
// the package log.
func setDefaultLogger(logger *slog.Logger) (restore func()) {
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(logger)
	return func() {
		slog.SetDefault(before)
		// The logger that slog has at first writes through the package log, whose output
		// SetDefault has changed, and does not change back.
		log.SetOutput(output)
		log.SetFlags(flags)
	}
}
