// Package textlog writes logs for people at a terminal.
package textlog

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Escape sequences of terminals.
const (
	colourNone   = ""
	colourFaint  = "\x1b[2m"
	colourRed    = "\x1b[91m"
	colourGreen  = "\x1b[92m"
	colourYellow = "\x1b[93m"
	colourReset  = "\x1b[0m"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// New returns a handler that writes a line for each record to w, in colours if w is a terminal and
// NO_COLOR is not set (https://no-color.org). An attribute named stack stands on lines of its own.
func New(w io.Writer, level slog.Leveler) slog.Handler {
	coloured := IsTerminal(w) && os.Getenv("NO_COLOR") == "" // empty means unset
	return handler{w: w, mu: new(sync.Mutex), level: level, isColoured: coloured}
}

// handler is the handler that New returns.
type handler struct {
	w          io.Writer
	mu         *sync.Mutex // guards w
	level      slog.Leveler
	isColoured bool
	// attributes is the text of those that all records have, and prefix begins the names of the others.
	attributes, prefix string
}

// Enabled reports whether records of a level are written.
func (h handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// Handle writes a record.
func (h handler) Handle(_ context.Context, r slog.Record) error {
	var line []byte
	if !r.Time.IsZero() {
		line = append(h.appendColoured(line, colourFaint, r.Time.Format(time.TimeOnly)), ' ')
	}
	line = append(h.appendLevel(line, r.Level), ' ')
	line = append(append(line, r.Message...), h.attributes...)
	stack := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "stack" && a.Value.Kind() == slog.KindString {
			stack = a.Value.String()
		} else {
			line = h.appendAttribute(line, h.prefix, a)
		}
		return true
	})
	line = append(line, '\n')
	if stack != "" {
		line = append(line, "  "+strings.ReplaceAll(strings.TrimSpace(stack), "\n", "\n  ")+"\n"...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(line)
	return err
}

// WithAttrs returns a handler whose records have these attributes.
func (h handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	var text []byte
	for _, a := range attributes {
		text = h.appendAttribute(text, h.prefix, a)
	}
	h.attributes += string(text)
	return h
}

// WithGroup returns a handler that puts further attributes into a group.
func (h handler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.prefix += name + "."
	}
	return h
}

// appendColoured appends a text in a colour.
func (h handler) appendColoured(line []byte, colour, text string) []byte {
	if !h.isColoured || colour == colourNone {
		return append(line, text...)
	}
	return append(append(append(line, colour...), text...), colourReset...)
}

// appendLevel appends a level as three letters and its distance from the named level below, such as
// WRN+2.
func (h handler) appendLevel(line []byte, level slog.Level) []byte {
	named, text, colour := slog.LevelDebug, "DBG", colourNone
	switch {
	case level >= slog.LevelError:
		named, text, colour = slog.LevelError, "ERR", colourRed
	case level >= slog.LevelWarn:
		named, text, colour = slog.LevelWarn, "WRN", colourYellow
	case level >= slog.LevelInfo:
		named, text, colour = slog.LevelInfo, "INF", colourGreen
	}
	if level > named {
		text += "+"
	}
	if level != named {
		text += strconv.Itoa(int(level - named))
	}
	return h.appendColoured(line, colour, text)
}

// appendAttribute appends a space, the name of an attribute after a prefix, and its value; or all
// attributes of a group.
func (h handler) appendAttribute(line []byte, prefix string, a slog.Attr) []byte {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range value.Group() {
			line = h.appendAttribute(line, prefix, inner)
		}
		return line
	}
	if a.Equal(slog.Attr{}) {
		return line
	}
	text := value.String()
	switch v := value.Any().(type) {
	case time.Time:
		text = v.Format(time.RFC3339Nano)
	case []byte:
		text = string(v)
	}
	line = h.appendColoured(append(line, ' '), colourFaint, quoted(prefix+a.Key)+"=")
	return append(line, quoted(text)...)
}

// quoted returns a text with quotes if it is empty, or has a space, an equals sign, a quote or
// characters that a terminal does not show.
func quoted(text string) string {
	if text == "" || strings.ContainsAny(text, ` ="`) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
