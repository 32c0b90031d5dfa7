package controller

import "time"

// Action is what a reconcile asks for: when the next reconcile of the object is due. The zero
// Action is [Done].
type Action struct {
	after time.Duration
}

// Done returns an Action that asks for no reconcile before the next change.
func Done() Action { return Action{} }

// RequeueAfter returns an Action that asks for the next reconcile after d. A change starts it
// earlier. A d that is not positive, such as the time until a moment that has passed, counts as
// one second, so that requeues are never a busy loop.
func RequeueAfter(d time.Duration) Action { return Action{after: requeueDelay(d)} }

// requeueDelay returns d, or one second if d is not positive.
func requeueDelay(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Second
	}
	return d
}

// Cleanup is the result of a cleanup: whether the cleanup is finished, and if it is not, when the
// next call is due. The zero Cleanup is [CleanupPending].
type Cleanup struct {
	isDone bool
	after  time.Duration
}

// CleanupDone returns the Cleanup of an object for which nothing is left to do. The controller
// removes its finalizer, and the server can delete the object.
func CleanupDone() Cleanup { return Cleanup{isDone: true} }

// CleanupPending returns a Cleanup that is not finished. The finalizer stays. The cleanup is called
// again after the next change of the object, or of a watched object that concerns it. Use
// [CleanupRequeueAfter] if the cleanup waits for something that is not watched.
func CleanupPending() Cleanup { return Cleanup{} }

// CleanupRequeueAfter returns a Cleanup that is not finished. The finalizer stays. The cleanup is
// called again after d, or earlier after a change. A d that is not positive counts as one second.
func CleanupRequeueAfter(d time.Duration) Cleanup { return Cleanup{after: requeueDelay(d)} }

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
	return isEachError(err, func(err error) bool {
		_, ok := err.(*terminal) //nolint:errorlint // isEachError unwraps
		return ok
	})
}
