package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/logctx"
)

const (
	// longestLine is how much of a line is kept until its end comes.
	longestLine = 1 << 20
	// countPeriod is how long reconciles that change nothing are counted in silence.
	countPeriod = 10 * time.Second
)

// logView shows the log of an operator to people. The operator writes JSON, because its standard
// error stream is no terminal:
//
//   - A reconcile that changed something becomes one short line.
//   - Reconciles that changed nothing are counted.
//   - A failed reconcile becomes a line with the error directly behind the object.
//   - The first line of a program is left out.
//   - Every other line of JSON becomes a line of text, and a line that is no JSON stays as it is.
//
// One goroutine at a time uses a logView.
type logView struct {
	out io.Writer
	// isVerbose is true if reconciles are shown in full.
	isVerbose bool
	handler   slog.Handler
	// rest is a line whose end has not come.
	rest []byte
	// unchangedCount is the number of reconciles that changed nothing, since the time of the first
	// of them.
	unchangedCount int
	unchangedSince time.Time
}

func newLogView(out io.Writer, verbose bool) *logView {
	return &logView{out: out, isVerbose: verbose, handler: logctx.NewTextHandler(out, slog.LevelDebug)}
}

// Write shows the lines that end in text.
func (v *logView) Write(text []byte) (int, error) {
	v.rest = append(v.rest, text...)
	for {
		line, rest, found := bytes.Cut(v.rest, []byte("\n"))
		switch {
		case found:
			v.show(line)
			v.rest = rest
		case len(v.rest) > longestLine:
			_, _ = v.out.Write(v.rest) // nobody is left to see an error
			v.rest = nil
		default:
			v.rest = bytes.Clone(v.rest)
			return len(text), nil
		}
	}
}

// flush shows what the operator has left when it ends.
func (v *logView) flush() {
	if len(v.rest) > 0 {
		v.show(v.rest)
		v.rest = nil
	}
	if v.unchangedCount > 0 {
		v.showText(time.Now(), "")
	}
}

// logLine is a line of the log of an operator.
type logLine struct {
	time       time.Time
	level      slog.Level
	message    string
	attributes []slog.Attr
}

// show shows or counts one line of the log.
func (v *logView) show(line []byte) {
	l, ok := parseLine(line)
	if !ok {
		fmt.Fprintf(v.out, "%s\n", line)
		return
	}
	if l.isStart() && !v.isVerbose {
		return // yare dev has printed what runs, and during development there are no versions
	}
	if beginning, changes, ok := l.reconcileText(); ok && !v.isVerbose {
		switch {
		case len(changes) > 0:
			v.showText(l.time, beginning+strings.Join(changes, ", "))
		case v.unchangedCount == 0:
			v.unchangedCount, v.unchangedSince = 1, l.time
		default:
			if v.unchangedCount++; l.time.Sub(v.unchangedSince) >= countPeriod {
				v.showText(l.time, "")
			}
		}
		return
	}
	if !v.isVerbose {
		l = l.shortFailure()
	}
	r := slog.NewRecord(l.time, l.level, l.message, 0)
	r.AddAttrs(l.attributes...)
	_ = v.handler.Handle(context.Background(), r) // nobody is left to see an error
}

// showText shows a line, and how many reconciles have changed nothing since the last one.
func (v *logView) showText(at time.Time, text string) {
	if v.unchangedCount > 0 {
		count := fmt.Sprintf("%d more reconciles changed nothing", v.unchangedCount)
		if v.unchangedCount == 1 {
			count = "1 more reconcile changed nothing"
		}
		if text != "" {
			count = " (" + count + ")"
		}
		text += count
		v.unchangedCount = 0
	}
	// nobody is left to see an error
	_ = v.handler.Handle(context.Background(), slog.NewRecord(at, slog.LevelInfo, text, 0))
}

// isStart reports whether the line is the first one of a program, which has the versions of the program and of yare.
func (l logLine) isStart() bool {
	return l.message == "starting" && slices.ContainsFunc(l.attributes, func(a slog.Attr) bool { return a.Key == "yare" })
}

// reconcileText returns the content of a line about a reconcile without an error: the beginning of a text, with the
// object and the cause, and the writes without the skipped writes. It reports whether the line is about such a
// reconcile. Example: "greeter reconciled default/hello (requeue): " and [`patch configmaps "default/hello"`].
func (l logLine) reconcileText() (beginning string, changes []string, ok bool) {
	var namespace, name, controller, cause string
	var writes []any
	for _, a := range l.attributes {
		switch a.Key {
		case "controller":
			controller = a.Value.String()
		case "namespace":
			namespace = a.Value.String()
		case "name":
			name = a.Value.String()
		case "cause":
			cause = a.Value.String()
		case "wrote":
			writes, ok = a.Value.Any().([]any)
		}
	}
	if !ok || l.level != slog.LevelDebug ||
		!slices.Contains([]string{"reconciled", "cleaned up", "cleanup pending"}, l.message) {
		return "", nil, false
	}
	changes = changesOf(writes)
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s (%s): ", controller, l.message, name, cause), changes, true
}

// changesOf returns the texts of writes without the skipped writes.
func changesOf(writes []any) (changes []string) {
	for _, w := range writes {
		if text := fmt.Sprint(w); !strings.HasSuffix(text, " (skipped)") {
			changes = append(changes, text)
		}
	}
	return changes
}

// secondsAttr returns an attribute with the duration of a, whose value is a number of seconds. It returns a if its
// value is something else.
func secondsAttr(a slog.Attr) slog.Attr {
	if seconds, err := strconv.ParseFloat(a.Value.String(), 64); err == nil {
		return slog.Duration(a.Key, time.Duration(seconds*float64(time.Second)).Round(time.Millisecond))
	}
	return a
}

// shortFailure returns a line about a reconcile that failed with the error in its message, directly behind the object,
// because the error is what the reader looks for. Numbers about the reconcile are left out. Other lines stay as they
// are. Example:
//
//	greeter reconcile failed default/hello (retry): the disk is full (wrote patch greeters "default/hello" status) retry=490ms
func (l logLine) shortFailure() logLine {
	var namespace, name, controller, cause, failure string
	var changes []string
	short := l
	short.attributes = nil
	for _, a := range l.attributes {
		switch text := a.Value.String(); a.Key {
		case "controller":
			controller = text
		case "namespace":
			namespace = text
		case "name":
			name = text
		case "cause":
			cause = text
		case "error":
			failure = text
		case "reconcileID", "reads", "took":
		case "retry":
			short.attributes = append(short.attributes, secondsAttr(a))
		case "wrote":
			writes, _ := a.Value.Any().([]any)
			changes = changesOf(writes)
		default:
			short.attributes = append(short.attributes, a)
		}
	}
	if controller == "" || failure == "" || l.message != "reconcile failed" && l.message != "cleanup failed" {
		return l
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	short.message = fmt.Sprintf("%s %s %s (%s): %s", controller, l.message, name, cause, failure)
	if len(changes) > 0 {
		short.message += " (wrote " + strings.Join(changes, ", ") + ")"
	}
	return short
}

// parseLine returns the line that JSON encodes, as package slog writes it. It reports whether the text is
// such a line.
func parseLine(text []byte) (l logLine, ok bool) {
	if !bytes.HasPrefix(text, []byte("{")) {
		return l, false
	}
	var head struct {
		Time  time.Time  `json:"time"`
		Level slog.Level `json:"level"`
		Msg   *string    `json:"msg"`
	}
	if json.Unmarshal(text, &head) != nil || head.Msg == nil {
		return l, false
	}
	l = logLine{time: head.Time, level: head.Level, message: *head.Msg}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if _, err := decoder.Token(); err != nil {
		return l, false
	}
	for decoder.More() {
		var value any
		key, err := decoder.Token()
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			return l, false
		}
		switch name := fmt.Sprint(key); name {
		case slog.TimeKey, slog.LevelKey, slog.MessageKey:
		default:
			l.attributes = append(l.attributes, slog.Any(name, value))
		}
	}
	return l, true
}
