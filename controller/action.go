package controller

import "time"

// Action says when to come again. The zero Action is Done.
type Action struct {
	after time.Duration
	open  bool
}

// RequeueAfter comes again after d, or earlier if something changes. A d that is not
// positive, such as the time until something that is over, is due: it comes again after a
// second, so that this is never a busy loop. From a cleanup it also means that it is not
// finished.
func RequeueAfter(d time.Duration) Action {
	if d <= 0 {
		d = time.Second
	}
	return Action{after: d, open: true}
}

// Done comes again when something changes. From a cleanup it means that it is finished,
// and the object may go.
func Done() Action { return Action{} }

// Pending is for a cleanup that is not finished: the finalizer stays, and it is called
// again when something changes. Use [RequeueAfter] if what it waits for is not watched.
func Pending() Action { return Action{open: true} }

// Terminal marks an error that only a change of the object can cure. It is not retried, and
// reported once for each change of the object. All the same the object is looked at again
// when anything changes that is watched for it: a mark that was wrong then heals. The nil
// error stays nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminal{err}
}

type terminal struct{ err error }

func (t *terminal) Error() string { return t.err.Error() }
func (t *terminal) Unwrap() error { return t.err }

// IsTerminal tells that err, or one that it wraps, was marked by [Terminal]. Of errors that
// were joined all must be: what can be retried is.
func IsTerminal(err error) bool {
	return consists(err, func(err error) bool {
		_, ok := err.(*terminal) //nolint:errorlint // consists unwraps
		return ok
	})
}
