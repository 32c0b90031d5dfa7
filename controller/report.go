package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// report logs a result and passes it to the observer and the author's functions. A reconcile leads
// to one line at most: an error is logged when it is new or has come often, and every result is
// logged at the level Debug. f is nil if the reconcile succeeded.
func (e *engine) report(reconciled *reconciliation, f *failure) {
	r := reconciled.result
	isVerbose := e.log.Enabled(context.Background(), slog.LevelDebug)
	attributes, shouldLog := e.errorDetails(reconciled.object, f, r)
	if isVerbose {
		attributes = append(details(r), attributes...)
	}
	switch {
	case shouldLog:
		e.logAbout(reconciled, slog.LevelError, failed(r), attributes)
	case isVerbose && r.Err != nil:
		e.logAbout(reconciled, slog.LevelDebug, failed(r), attributes)
	case isVerbose:
		e.logAbout(reconciled, slog.LevelDebug, verb(r), attributes)
	}
	if e.runtime.Observer != nil {
		e.guardAuthor("the observer of results", func() { e.runtime.Observer.Result(r) })
	}
	for _, onResult := range e.onResult {
		e.guardAuthor("a function for results", func() { onResult(r) })
	}
}

// logAbout logs a line about a reconcile, with the attributes that the author's lines have.
func (e *engine) logAbout(r *reconciliation, level slog.Level, text string, attributes []slog.Attr) {
	e.log.LogAttrs(context.Background(), level, text, append(r.call.LogAttrs(), attributes...)...)
}

// errorDetails returns the attributes of a log line about the error of a result. It reports whether the
// line belongs at the level Error: the error is new, or has come often. Without an error it returns nothing.
func (e *engine) errorDetails(obj kube.Object, f *failure, r Result) (attributes []slog.Attr, shouldBeLogged bool) {
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
		lasted := time.Since(f.conflictsSince)
		if lasted < f.conflictReportAfter {
			return attributes, false
		}
		f.conflictReportAfter = 2 * lasted
		attributes = append(attributes, slog.Int("conflicts", f.conflictCount), slog.Duration("for", lasted.Round(time.Second)))
		return append(attributes, panicAttrs(r.Err, false)...), true
	case IsTerminal(r.Err), kube.IsInvalid(r.Err):
		// The server is likely to refuse the same object again. The reconcile is retried,
		// because others may remove the reason, but the error is logged once for each edition of
		// the object.
		isFirst := f.throttle.record(edition(obj, r.Err)+" "+text) == 1
		return append(attributes, panicAttrs(r.Err, isFirst)...), isFirst
	default:
		count := f.throttle.record(text)
		if count > 1 {
			attributes = append(attributes, slog.Int("times", count))
		}
		return append(attributes, panicAttrs(r.Err, count == 1)...), shouldLog(count)
	}
}

// edition identifies the state of an object apart from its status.
func edition(obj kube.Object, err error) string {
	if misfit, ok := errors.AsType[*kube.DecodeError](err); ok {
		return misfit.ResourceVersion
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

// panicAttrs returns the place of the statement that panicked, and the stack, if err is a panic. The
// stack is long, so it is logged only with the first of several equal panics.
func panicAttrs(err error, isFirst bool) []slog.Attr {
	p, ok := errors.AsType[*panicError](err)
	switch {
	case !ok:
		return nil
	case !isFirst:
		return []slog.Attr{slog.String("at", p.site)}
	}
	return []slog.Attr{slog.String("at", p.site), slog.String("stack", p.stack)}
}

func verb(r Result) string {
	if r.Cleanup {
		return "cleaned up"
	}
	return "reconciled"
}

func failed(r Result) string {
	if r.Cleanup {
		return "cleanup failed"
	}
	return "reconcile failed"
}

// details returns the attributes of a log line about a result at the level Debug.
func details(r Result) []slog.Attr {
	attributes := []slog.Attr{
		slog.String("cause", r.Causes), slog.Any("wrote", writes(r.Writes)), slog.Int("reads", r.Reads),
		slog.Duration("took", r.Duration.Round(10*time.Microsecond)),
	}
	if r.Next > 0 && r.Err == nil {
		attributes = append(attributes, slog.Duration("next", r.Next.Round(10*time.Millisecond)))
	}
	return attributes
}

// writes is a list of writes as an attribute: a text for people, an array in JSON.
type writes []Write

func (w writes) String() string {
	if len(w) == 0 {
		return "nothing"
	}
	return strings.Join(w.texts(), ", ")
}

// MarshalJSON returns an array with the text of each write.
func (w writes) MarshalJSON() ([]byte, error) { return kube.Marshal(w.texts()) }

func (w writes) texts() []string {
	texts := make([]string, len(w))
	for i, each := range w {
		texts[i] = each.String()
	}
	return texts
}

// reportMapping logs an error that occurred while the controller looked for the objects that a
// watched object concerns. A fault of a function concerns thousands of objects, so repetitions
// are throttled.
func (e *engine) reportMapping(sub *subscription, r cache.Record, err error) {
	sub.mu.Lock()
	times := sub.throttle.record(err.Error())
	sub.mu.Unlock()
	if !shouldLog(times) {
		return
	}
	attributes := []slog.Attr{
		slog.String("controller", e.name), slog.String("kind", sub.watched.kind.Resource.Kind),
		slog.String("namespace", r.Namespace), slog.String("name", r.Name), slog.Any("error", err),
	}
	if times > 1 {
		attributes = append(attributes, slog.Int("times", times))
	}
	e.log.LogAttrs(context.Background(), slog.LevelError, "the objects that a change concerns are not known", append(attributes, panicAttrs(err, times == 1)...)...)
}
