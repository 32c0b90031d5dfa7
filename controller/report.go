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

// report logs a result and passes it to the observer and the author's functions. It logs an
// error when the error is new or has come often, and at the level Debug every result. f is nil
// if the reconcile succeeded.
func (e *engine[T]) report(t *T, f *failure, r Result) {
	e.logError(t, f, r)
	if e.log.Enabled(context.Background(), slog.LevelDebug) {
		e.log.Debug(verb(r), append(e.about(r), details(r)...)...)
	}
	if e.runtime.Observer != nil {
		e.guardAuthor("the observer of results", func() { e.runtime.Observer.Result(r) })
	}
	for _, onResult := range e.onResult {
		e.guardAuthor("a function for results", func() { onResult(r) })
	}
}

// logError logs the error of a result, unless the log has it already.
func (e *engine[T]) logError(t *T, f *failure, r Result) {
	if r.Err == nil {
		return
	}
	text, retry := r.Err.Error(), "when it changes"
	if r.Next > 0 {
		retry = r.Next.Round(10 * time.Millisecond).String()
	}
	attributes := append(e.about(r), "error", r.Err, "retry", retry)
	isFirst := false
	switch {
	case !IsTerminal(r.Err) && isConflict(r.Err):
		lasted := time.Since(f.conflictsSince)
		if lasted < f.conflictReportAfter {
			return
		}
		f.conflictReportAfter = 2 * lasted
		attributes = append(attributes, "conflicts", f.conflictCount, "for", lasted.Round(time.Second).String())
	case IsTerminal(r.Err), kube.IsInvalid(r.Err):
		// The server is likely to refuse the same object again. The reconcile is retried,
		// because others may remove the reason, but the error is logged once for each edition of
		// the object.
		var obj kube.Object
		if t != nil {
			obj = e.object(t)
		}
		if f.throttle.record(edition(obj, r.Err)+" "+text) > 1 {
			return
		}
		isFirst = true
	default:
		count := f.throttle.record(text)
		if !shouldLog(count) {
			return
		}
		if isFirst = count == 1; !isFirst {
			attributes = append(attributes, "times", count)
		}
	}
	e.log.Error(failed(r), append(attributes, stackOf(r.Err, isFirst)...)...)
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

// about returns the attributes that name the controller and the object.
func (e *engine[T]) about(r Result) []any {
	return []any{"controller", e.name, "namespace", r.Object.Namespace, "name", r.Object.Name}
}

// stackOf returns the stack of a panic as an attribute, the first time that it is logged.
func stackOf(err error, first bool) []any {
	if p, ok := errors.AsType[*panicError](err); ok && first {
		return []any{"stack", string(p.stack)}
	}
	return nil
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

func details(r Result) []any {
	attributes := []any{
		"cause", r.Causes, "wrote", written(r.Writes), "reads", r.Reads,
		"took", r.Duration.Round(10 * time.Microsecond).String(),
	}
	if r.Err != nil {
		attributes = append(attributes, "error", r.Err)
	}
	next := "when something changes"
	if r.Next > 0 {
		next = "in " + r.Next.Round(10*time.Millisecond).String()
	}
	return append(attributes, slog.String("next", next))
}

func written(writes []Write) string {
	if len(writes) == 0 {
		return "nothing"
	}
	texts := make([]string, len(writes))
	for i, w := range writes {
		texts[i] = w.String()
	}
	return strings.Join(texts, ", ")
}

// reportMapping logs an error that occurred while the controller looked for the objects that a
// watched object concerns. A fault of a function concerns thousands of objects, so repetitions
// are throttled.
func (e *engine[T]) reportMapping(sub *subscription, r cache.Record, err error) {
	sub.mu.Lock()
	times := sub.throttle.record(err.Error())
	sub.mu.Unlock()
	if !shouldLog(times) {
		return
	}
	attributes := []any{"controller", e.name, "kind", sub.watched.kind.Resource.Kind, "namespace", r.Namespace, "name", r.Name, "error", err}
	if times > 1 {
		attributes = append(attributes, "times", times)
	}
	e.log.Error("the objects that a change concerns are not known", append(attributes, stackOf(err, times == 1)...)...)
}
