package controller

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// report tells a result: an error in one line, when it is new or has come often; with -v,
// every call. Known is nil if nothing went wrong.
func (e *engine[T]) report(t *T, known *object, r Result) {
	e.reportError(t, known, r)
	if e.log.Enabled(context.Background(), slog.LevelDebug) {
		e.log.Debug(verb(r), append(e.about(r), details(r)...)...)
	}
	if e.runtime.Observer != nil {
		e.guard("the observer of results", func() { e.runtime.Observer.Result(r) })
	}
	for _, f := range e.onResult {
		e.guard("a function for results", func() { f(r) })
	}
}

func (e *engine[T]) reportError(t *T, known *object, r Result) {
	if r.Err == nil || !IsTerminal(r.Err) && isConflict(r.Err) {
		return
	}
	text, retry := r.Err.Error(), "when it changes"
	if r.Next > 0 {
		retry = r.Next.Round(10 * time.Millisecond).String()
	}
	// What the server finds to be wrong is likely to be wrong again until the object
	// changes: it is retried, because that may be up to somebody else, but told only once.
	if IsTerminal(r.Err) || kube.IsInvalid(r.Err) {
		var obj kube.Object
		if t != nil {
			obj = e.object(t)
		}
		if !known.told.first(edition(obj, r.Err) + " " + text) {
			return
		}
	} else if !known.told.worthTelling(text) {
		return
	}
	attributes := append(e.about(r), "error", r.Err, "retry", retry)
	if known.told.times > 1 {
		attributes = append(attributes, "times", known.told.times)
	}
	e.log.Error(failed(r), append(attributes, stackOf(r.Err, known.told.times == 1)...)...)
}

// about is what a line of the log is about.
func (e *engine[T]) about(r Result) []any {
	return []any{"controller", e.name, "namespace", r.Object.Namespace, "name", r.Object.Name}
}

// stackOf is where a panic was, for the log, the first time that it is told.
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

// reportSource tells what went wrong while a change was looked at. What is wrong with a
// function is wrong with it for thousands of objects.
func (e *engine[T]) reportSource(sub *subscription, r cache.Record, err error) {
	sub.mu.Lock()
	worth := sub.told.worthTelling(err.Error())
	times := sub.told.times
	sub.mu.Unlock()
	if !worth {
		return
	}
	attributes := []any{"controller", e.name, "kind", sub.source.kind.Resource.Kind, "namespace", r.Namespace, "name", r.Name, "error", err}
	if times > 1 {
		attributes = append(attributes, "times", times)
	}
	e.log.Error("a change could not be attributed", append(attributes, stackOf(err, times == 1)...)...)
}
