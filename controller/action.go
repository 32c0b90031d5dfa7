package controller

import "time"

// Action is what a reconcile or a cleanup asks for: when the next reconcile is due, and whether
// a cleanup is finished. The zero Action is Done.
type Action struct {
	after time.Duration
	open  bool
}

// RequeueAfter returns an Action that asks for the next reconcile after d. A change starts it
// earlier. A d that is not positive, such as the time until a moment that has passed, counts as
// one second, so that requeues are never a busy loop. Returned by a cleanup, it also means that
// the cleanup is not finished.
func RequeueAfter(d time.Duration) Action {
	if d <= 0 {
		d = time.Second
	}
	return Action{after: d, open: true}
}

// Done returns an Action that asks for no reconcile before the next change. Returned by a
// cleanup, it means that the cleanup is finished, and the finalizer is removed.
func Done() Action { return Action{} }

// Pending returns an Action for a cleanup that is not finished. The finalizer stays, and the
// cleanup is called again after the next change. Use [RequeueAfter] if the cleanup waits for
// something that is not watched.
func Pending() Action { return Action{open: true} }

// Terminal marks err as not retryable: only a change of the object can cure it. The error is
// logged once for each change of the object. The object is reconciled again when a watched
// object changes, so a wrong mark has no lasting effect. Terminal(nil) returns nil.
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
	return isEachError(err, func(err error) bool {
		_, ok := err.(*terminal) //nolint:errorlint // isEachError unwraps
		return ok
	})
}
