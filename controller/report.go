package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// reporter reports the results of reconciles: to the log, to the observer of the program and to the
// author's functions.
type reporter struct {
	log *slog.Logger
	// observer may be nil.
	observer Observer
	onResult []func(Result)
	events   failureEvents
}

// report reports the result r of a call for obj, which is nil if the object could not be read. A
// reconcile leads to one line at most: an error is logged when it is new or has come often, and every
// result is logged at the level Debug. failing is what is remembered of the object. It is nil if the reconcile
// succeeded.
func (p *reporter) report(c *reconcileContext, obj kube.Object, r Result, failing *unfinishedObject) {
	isVerbose := p.log.Enabled(context.Background(), slog.LevelDebug)
	attributes, isErrorLogged := throttleError(obj, failing, r)
	if isVerbose {
		attributes = append(debugAttrs(r), attributes...)
	}
	switch {
	case isErrorLogged:
		c.log(slog.LevelError, r.logText(), attributes)
	case isVerbose:
		c.log(slog.LevelDebug, r.logText(), attributes)
	}
	if failing != nil {
		p.events.recordFailure(r, failing.failingSince)
	}
	if p.observer != nil {
		callLoggingPanic(p.log, "the observer of results", func() { p.observer.Result(r) })
	}
	for _, onResult := range p.onResult {
		callLoggingPanic(p.log, "a function for results", func() { onResult(r) })
	}
}

// throttleError counts the error of a result in failing. It returns the attributes of a log line about the error, and
// reports whether the line belongs at the level Error: the error is new, or has come often. Without an error it returns
// nothing.
func throttleError(obj kube.Object, failing *unfinishedObject, r Result) (attributes []slog.Attr, isErrorLogged bool) {
	if r.Err == nil {
		return nil, false
	}
	text := r.Err.Error()
	attributes = append(attributes, slog.Any("error", r.Err))
	if r.Next > 0 {
		attributes = append(attributes, slog.Duration("retry", r.Next.Round(10*time.Millisecond)))
	}
	switch {
	case !IsTerminal(r.Err) && isConflict(r.Err):
		lasted := time.Since(failing.conflictsSince)
		if lasted < failing.conflictReportAfter {
			return attributes, false
		}
		failing.conflictReportAfter = 2 * lasted
		attributes = append(attributes, slog.Int("conflicts", failing.conflictCount),
			slog.Duration("for", lasted.Round(time.Second)))
		return append(attributes, panicAttrs(r.Err, false)...), true
	case IsTerminal(r.Err), kube.IsInvalid(r.Err):
		// The server is likely to refuse the same object again. The reconcile is retried,
		// because others may remove the reason. But the error is logged once for each state
		// of the object apart from its status: see specState.
		isFirst := failing.throttle.record(specState(obj, r.Err)+" "+text) == 1
		return append(attributes, panicAttrs(r.Err, isFirst)...), isFirst
	default:
		count := failing.throttle.record(text)
		if count > 1 {
			attributes = append(attributes, slog.Int("times", count))
		}
		return append(attributes, panicAttrs(r.Err, count == 1)...), shouldLog(count)
	}
}

// specState returns a text that identifies the state of an object apart from its status. err is the error of the
// reconcile.
func specState(obj kube.Object, err error) string {
	if decodeErr, ok := errors.AsType[*wire.DecodeError](err); ok {
		return decodeErr.ResourceVersion
	}
	switch {
	case obj == nil:
		return ""
	case obj.GetGeneration() == 0: // the kind has no generation
		return obj.GetResourceVersion()
	default:
		return fmt.Sprint(obj.GetGeneration(), obj.GetLabels(), obj.GetAnnotations())
	}
}

// debugAttrs returns the attributes of a log line about a result at the level Debug.
func debugAttrs(r Result) []slog.Attr {
	attributes := []slog.Attr{
		slog.String("cause", r.Causes), slog.Any("wrote", writeList(r.Writes)), slog.Int("reads", r.Reads),
		slog.Duration("took", r.Duration.Round(10*time.Microsecond)),
	}
	if r.Next > 0 && r.Err == nil {
		attributes = append(attributes, slog.Duration("next", r.Next.Round(10*time.Millisecond)))
	}
	return attributes
}

// writeList is a list of writes as an attribute: a text for people, an array in JSON.
type writeList []WriteReport

// String returns the texts of the writes, separated by commas.
func (w writeList) String() string {
	if len(w) == 0 {
		return "nothing"
	}
	return strings.Join(w.texts(), ", ")
}

// MarshalJSON returns an array with the text of each write.
func (w writeList) MarshalJSON() ([]byte, error) { return kube.Marshal(w.texts()) }

func (w writeList) texts() []string {
	texts := make([]string, len(w))
	for i, each := range w {
		texts[i] = each.String()
	}
	return texts
}

// logThrottle counts how often the same text came in a row.
type logThrottle struct {
	text  string
	count int
}

// record counts an occurrence of text, and returns how often text has come in a row.
func (t *logThrottle) record(text string) int {
	if text != t.text {
		t.text, t.count = text, 0
	}
	t.count++
	return t.count
}

// shouldLog reports whether the count-th occurrence of a text in a row should be logged: the
// first, the second, the fourth, the eighth and so on.
func shouldLog(count int) bool { return count&(count-1) == 0 }
