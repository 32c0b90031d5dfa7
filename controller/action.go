package controller

import "time"

// Action is what a reconcile asks for: when the next reconcile of the object is due. The zero
// Action is [Done].
type Action struct {
	after time.Duration
}

// Done returns an Action that asks for no reconcile before the next change.
func Done() Action { return Action{} }

// RequeueAfter returns an Action that asks for the next reconcile after d. A change starts it earlier.
// Requeues are never a busy loop. A d of zero or less, such as the time until a moment in the past, counts as one
// second. No other d is shorter than 10 ms. If three reconciles of an object in a row return the same d below 1 ms, d
// is a number without a unit, such as that of RequeueAfter(30): from then on it counts as one second, and the log says
// so.
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
// [CleanupRequeueAfter] if the cleanup waits for something that is not watched. For an object that no longer
// matches the selectors of [Reconciled], whose changes are not watched, the cleanup is called at least once a minute.
func CleanupPending() Cleanup { return Cleanup{} }

// CleanupRequeueAfter returns a Cleanup that is not finished. The finalizer stays. The cleanup is
// called again after d, or earlier after a change. A short d counts as [RequeueAfter] says.
func CleanupRequeueAfter(d time.Duration) Cleanup { return Cleanup{after: requeueDelay(d)} }
