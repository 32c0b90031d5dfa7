package controller

import (
	"time"

	"github.com/yare-go/yare/kube"
)

// consists tells whether err is one that holds, or wraps one, or joins only such: a
// conflict that is joined with something else must not hide it.
func consists(err error, holds func(error) bool) bool {
	if err == nil {
		return false
	}
	if holds(err) {
		return true
	}
	switch w := err.(type) { //nolint:errorlint // it walks the tree of errors itself
	case interface{ Unwrap() error }:
		return consists(w.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, each := range w.Unwrap() {
			if !consists(each, holds) {
				return false
			}
		}
		return len(w.Unwrap()) > 0
	}
	return false
}

// isConflict reports whether err is expected in normal operation, and retried quietly: the
// object has changed since it was read, or its namespace is being deleted. A conflict with
// another field manager is not, because it would be the same the next time.
func isConflict(err error) bool {
	return consists(err, func(err error) bool {
		e, ok := err.(*kube.Error) //nolint:errorlint // consists unwraps
		return ok && (kube.IsConflict(e) && !kube.IsApplyConflict(e) || kube.IsUIDConflict(e) || kube.IsNamespaceTerminating(e))
	})
}

// askedWait is how long the server asked to be left alone, in any of the errors in err.
func askedWait(err error) (d time.Duration) {
	consists(err, func(err error) bool {
		if e, ok := err.(*kube.Error); ok { //nolint:errorlint // consists unwraps
			d = max(d, e.RetryDelay())
		}
		return false
	})
	return d
}
