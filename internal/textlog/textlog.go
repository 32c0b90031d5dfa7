// Package textlog writes logs for people at a terminal.
package textlog

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// New returns a handler that writes a line for each record to w, in colours if w is a terminal and
// NO_COLOR is not set (https://no-color.org). An attribute named stack stands on lines of its own.
func New(w io.Writer, level slog.Leveler) slog.Handler {
	plain := !IsTerminal(w) || os.Getenv("NO_COLOR") != "" // empty means unset
	next := tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: plain})
	return handler{next, w, new(sync.Mutex)}
}

// handler takes stacks out of records.
type handler struct {
	next slog.Handler
	w    io.Writer
	// mu keeps a line and its stack together.
	mu *sync.Mutex
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	stack := ""
	line := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "stack" && a.Value.Kind() == slog.KindString {
			stack = a.Value.String()
		} else {
			line.AddAttrs(a)
		}
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.next.Handle(ctx, line)
	if stack != "" && err == nil {
		_, err = io.WriteString(h.w, "  "+strings.ReplaceAll(strings.TrimSpace(stack), "\n", "\n  ")+"\n")
	}
	return err
}

func (h handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attributes)
	return h
}

func (h handler) WithGroup(name string) slog.Handler {
	h.next = h.next.WithGroup(name)
	return h
}
