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

// newLogger returns a logger that writes text for people if w is a terminal, and JSON otherwise.
func newLogger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		plain := os.Getenv("NO_COLOR") != "" // empty means unset: https://no-color.org
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: plain}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// setDefaultLogger makes logger the default of the packages slog and log, so that the author's
// own lines have the same form. restore sets the previous defaults.
func setDefaultLogger(logger *slog.Logger) (restore func()) {
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(logger)
	return func() {
		slog.SetDefault(before)
		// The first default of slog writes through package log. SetDefault has changed the
		// output of package log, and does not change it back.
		log.SetOutput(output)
		log.SetFlags(flags)
	}
}
