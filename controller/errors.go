package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// errExited is the error of a function of the author that ended its goroutine.
var errExited = errors.New("the function called runtime.Goexit: return an error instead")

// Terminal marks err as not retryable: only a change of the object can cure it. The error is
// logged once for each change of the object. The object is reconciled again when a watched
// object changes, so a wrong mark has no lasting effect. The [Action] that is returned with the error
// does not count, so no requeue is due either. Terminal(nil) returns nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminal{err}
}

type terminal struct{ err error }

func (t *terminal) Error() string { return t.err.Error() }
func (t *terminal) Unwrap() error { return t.err }

// IsTerminal reports whether err, or an error that it wraps, was marked by [Terminal]. Joined
// errors are terminal only if all of them are.
func IsTerminal(err error) bool {
	return holdsForAll(err, func(err error) bool {
		_, ok := err.(*terminal) //nolint:errorlint // holdsForAll unwraps
		return ok
	})
}

// holdsForAll reports whether holds returns true for err or an error that err wraps. If err joins several errors,
// holdsForAll must report true for each of them: a conflict must not hide another error beside it.
func holdsForAll(err error, holds func(error) bool) bool {
	if err == nil {
		return false
	}
	if holds(err) {
		return true
	}
	switch w := err.(type) { //nolint:errorlint // it walks the tree of errors itself
	case interface{ Unwrap() error }:
		return holdsForAll(w.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, each := range w.Unwrap() {
			if !holdsForAll(each, holds) {
				return false
			}
		}
		return len(w.Unwrap()) > 0
	}
	return false
}

// isConflict reports whether err is expected in normal operation, and retried quietly: the
// object has changed since it was read, or its namespace is being deleted. A conflict with
// another field manager is not expected, because a retry would meet the same conflict.
func isConflict(err error) bool {
	return holdsForAll(err, func(err error) bool {
		e, ok := err.(*wire.Error) //nolint:errorlint // holdsForAll unwraps
		return ok &&
			(kube.IsConflict(e) && !kube.IsApplyConflict(e) || kube.IsUIDConflict(e) || kube.IsNamespaceTerminating(e))
	})
}

// serverDelay returns the longest delay that a server asked for in the errors in err.
func serverDelay(err error) (d time.Duration) {
	if e, ok := err.(*wire.Error); ok { //nolint:errorlint // the function walks the tree of errors itself
		d = e.RetryDelay()
	}
	switch w := err.(type) { //nolint:errorlint // the same
	case interface{ Unwrap() error }:
		d = max(d, serverDelay(w.Unwrap()))
	case interface{ Unwrap() []error }:
		for _, each := range w.Unwrap() {
			d = max(d, serverDelay(each))
		}
	}
	return d
}

// panicError is a panic that became an error.
type panicError struct {
	what  string
	value any
	// site is the file and the line of the statement that panicked.
	site  string
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.what, e.value) }

// recoverPanic calls f and returns its error. A panic in f becomes an error that begins with *what, such as "the
// reconcile function panicked". f may change *what while f runs.
func recoverPanic(what *string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{what: *what, value: value, site: logctx.PanicSite(), stack: logctx.PanicStack()}
		}
	}()
	return f()
}

// callLoggingPanic calls a function of the author whose failure changes nothing else. It logs a panic in f.
func callLoggingPanic(log *slog.Logger, what string, f func()) {
	err := recoverPanic(&what, func() error {
		f()
		return nil
	})
	if err != nil {
		log.LogAttrs(context.Background(), slog.LevelError, what+" failed",
			append([]slog.Attr{slog.Any("error", err)}, panicAttrs(err, true)...)...)
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

func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}
