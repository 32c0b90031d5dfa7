package logctx

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
)

// valuer is a value that chooses what is logged.
type valuer struct{ v slog.Value }

func (v valuer) LogValue() slog.Value { return v.v }

func TestLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 12, 0, 3, 5e6, time.UTC)
	for want, log := range map[string]func(*slog.Logger){
		"INF hello there": func(l *slog.Logger) { l.Info("hello there") },
		"DBG m":           func(l *slog.Logger) { l.Debug("m") },
		"DBG-2 m":         func(l *slog.Logger) { l.Log(t.Context(), -6, "m") },
		"WRN m":           func(l *slog.Logger) { l.Warn("m") },
		"WRN+2 m":         func(l *slog.Logger) { l.Log(t.Context(), 6, "m") },
		"ERR m error=no":  func(l *slog.Logger) { l.Error("m", "error", errors.New("no")) },
		`INF m a="" b="a b" c="a=b" d="\"" e="\x1b[2J\n" f=é/\`: func(l *slog.Logger) {
			l.Info("m", "a", "", "b", "a b", "c", "a=b", "d", `"`, "e", "\x1b[2J\n", "f", `é/\`)
		},
		`INF m i=-1 u=1 f=0.5 b=true d=1.5s n=<nil> bytes=text list="[1 2]"`: func(l *slog.Logger) {
			l.Info("m", "i", -1, "u", uint(1), "f", 0.5, "b", true, "d", 1500*time.Millisecond, "n", nil, "bytes", []byte("text"), "list", []int{1, 2})
		},
		"INF m at=2026-11-22T12:00:03.005Z": func(l *slog.Logger) { l.Info("m", "at", at) },
		"INF m v=chosen":                    func(l *slog.Logger) { l.Info("m", "v", valuer{slog.StringValue("chosen")}) },
		"INF m a=1 g.b=2 g.h.c=3 g.h.d=4 g.e=5": func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).Info("m", slog.Group("h", "c", 3, "d", 4), slog.Group("", "e", 5))
		},
		"INF m": func(l *slog.Logger) { l.WithGroup("").With().Info("m", slog.Attr{}, slog.Group("empty")) },
		"ERR m n=7\n  goroutine 7 [running]:\n  main.f()": func(l *slog.Logger) { l.Error("m", "stack", "goroutine 7 [running]:\nmain.f()\n", "n", 7) },
	} {
		var b bytes.Buffer
		log(slog.New(NewTextHandler(&b, slog.Level(-8))))
		_, got, _ := strings.Cut(b.String(), " ") // the time
		if got != want+"\n" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var b bytes.Buffer
	r := slog.NewRecord(at, slog.LevelInfo, "m", 0)
	if err := NewTextHandler(&b, slog.LevelInfo).Handle(t.Context(), r); err != nil || b.String() != "12:00:03 INF m\n" {
		t.Errorf("got %q and %v", b.String(), err)
	}
}

// The rules of slog.Handler that show in a line of text.
func TestHandlerRules(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := slogtest.TestHandler(NewTextHandler(&b, slog.LevelInfo), func() []map[string]any {
		var records []map[string]any
		for line := range strings.Lines(b.String()) {
			words := strings.Fields(line)
			record := map[string]any{}
			if strings.Count(words[0], ":") == 2 {
				record[slog.TimeKey] = words[0]
				words = words[1:]
			}
			record[slog.LevelKey], record[slog.MessageKey] = words[0], words[1]
			for _, word := range words[2:] {
				name, value, found := strings.Cut(word, "=")
				if !found {
					continue // the message has several words
				}
				group := record
				path := strings.Split(name, ".")
				for _, each := range path[:len(path)-1] {
					if group[each] == nil {
						group[each] = map[string]any{}
					}
					group = group[each].(map[string]any)
				}
				group[path[len(path)-1]] = value
			}
			records = append(records, record)
		}
		return records
	})
	if err != nil {
		t.Error(err)
	}
}

// onlyWholeLines is a writer that fails the test if two calls overlap, or a call writes half a line.
type onlyWholeLines struct {
	t    *testing.T
	busy sync.Mutex
}

func (w *onlyWholeLines) Write(text []byte) (int, error) {
	if !w.busy.TryLock() {
		w.t.Error("two lines are written at once")
		return 0, nil
	}
	defer w.busy.Unlock()
	if !bytes.HasSuffix(text, []byte("\n")) {
		w.t.Errorf("half a line is written: %q", text)
	}
	return len(text), nil
}

func TestLinesAreWhole(t *testing.T) {
	t.Parallel()
	logger := slog.New(NewTextHandler(&onlyWholeLines{t: t}, slog.LevelInfo))
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 100 {
				logger.With("a", 1).Error("m", "stack", "a\nb")
			}
		})
	}
	running.Wait()
}

// What others have written does not control the terminal, in colours or not.
func TestNothingControlsTheTerminal(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]string{
		"\x1b[2J":                     `"\x1b[2J"`,
		`\x1b[2J and \x1b[2K`:         `"\\x1b[2J and \\x1b[2K"`,
		`\x1b[2J`:                     `"\\x1b[2J"`,
		"\u009b2J":                    `"\u009b2J"`,
		"a\rb":                        `"a\rb"`,
		"broken\xff text":             `"broken\xff text"`,
		errors.New("\x1b[2J"):         `"\x1b[2J"`,
		struct{ s string }{"\x1b[2J"}: `"{\x1b[2J}"`,
	} {
		for _, isColoured := range []bool{true, false} {
			var b bytes.Buffer
			slog.New(newTextHandler(&b, slog.LevelInfo, isColoured)).Info("m", "v", value)
			_, got, _ := strings.Cut(b.String(), "v=")
			if got = strings.TrimPrefix(got, "\x1b[0m"); got != want+"\n" { // the end of the colour of the name
				t.Errorf("coloured %v: %q is written as %q, want %q", isColoured, value, got, want)
			}
		}
	}
}

// The time and the names are faint, and a level has the colour of its severity.
func TestColours(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	h := newTextHandler(&b, slog.LevelDebug, true)
	r := slog.NewRecord(time.Date(2026, 11, 22, 12, 0, 3, 5e6, time.UTC), slog.LevelWarn, "m", 0)
	r.AddAttrs(slog.Int("n", 7))
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "\x1b[2m12:00:03\x1b[0m \x1b[93mWRN\x1b[0m m \x1b[2mn=\x1b[0m7\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
