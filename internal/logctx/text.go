package logctx

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// NewTextHandler returns a handler that writes a line for each record to w, in colours if w is a
// terminal and NO_COLOR is not set (https://no-color.org). An attribute named stack stands on lines of
// its own.
func NewTextHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return newTextHandler(w, level, IsTerminal(w) && os.Getenv("NO_COLOR") == "") // empty means unset
}

func newTextHandler(w io.Writer, level slog.Leveler, isColoured bool) slog.Handler {
	lines := &lineWriter{w: w}
	return textHandler{lines: lines, Handler: tint.NewTextHandler(lines, &tint.Options{
		Level: level, TimeFormat: time.TimeOnly, NoColor: !isColoured, ReplaceAttr: quoteEscapeSequences,
	})}
}

// quoteEscapeSequences returns an attribute that controls no terminal. In colours, tint writes the escape sequences of
// a text as they are, and quotes bytes in full. So a text with an escape sequence becomes bytes.
func quoteEscapeSequences(_ []string, a slog.Attr) slog.Attr {
	var text string
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case []byte:
		text = string(v)
	case slog.Level: // it may be the level of the record, which tint writes in a colour
		return a
	default:
		if a.Value.Kind() != slog.KindAny || a.Equal(slog.Attr{}) {
			return a
		}
		text = a.Value.String()
	}
	// tint takes a text with the characters \x1b for an escape sequence too.
	if strings.Contains(text, "\x1b") || strings.Contains(text, `\x1b`) || !utf8.ValidString(text) {
		return slog.Any(a.Key, []byte(text))
	}
	return slog.String(a.Key, text)
}

// textHandler writes records through a handler that calls lines.Write once for each record.
type textHandler struct {
	slog.Handler
	lines *lineWriter
}

// Handle writes a record.
func (h textHandler) Handle(ctx context.Context, r slog.Record) error {
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
	return h.lines.withStack(stack, func() error { return h.Handler.Handle(ctx, line) })
}

// WithAttrs returns a handler whose records have these attributes.
func (h textHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return textHandler{h.Handler.WithAttrs(attributes), h.lines}
}

// WithGroup returns a handler that puts further attributes into a group.
func (h textHandler) WithGroup(name string) slog.Handler {
	return textHandler{h.Handler.WithGroup(name), h.lines}
}

// lineWriter writes a stack behind a line.
type lineWriter struct {
	mu sync.Mutex
	// w and stack belong to the goroutine that has mu.
	w     io.Writer
	stack string
}

// withStack calls write, which calls Write with one line, and adds the stack to the line.
func (l *lineWriter) withStack(stack string, write func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stack = stack
	return write()
}

// Write writes a line and the stack in one call.
func (l *lineWriter) Write(line []byte) (int, error) {
	if l.stack == "" {
		return l.w.Write(line)
	}
	stack := "  " + strings.ReplaceAll(strings.TrimSpace(l.stack), "\n", "\n  ") + "\n"
	if _, err := l.w.Write(bytes.Join([][]byte{line, []byte(stack)}, nil)); err != nil {
		return 0, err
	}
	return len(line), nil
}
