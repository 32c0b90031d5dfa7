package controller

import (
	"time"

	"github.com/yare-go/yare/kube"
)

// isEachError reports whether holds reports true for err or an error that it wraps. If errors are
// joined, holds must report true for each: a conflict must not hide the error that it is joined with.
func isEachError(err error, holds func(error) bool) bool {
	if err == nil {
		return false
	}
	if holds(err) {
		return true
	}
	switch w := err.(type) { //nolint:errorlint // it walks the tree of errors itself
	case interface{ Unwrap() error }:
		return isEachError(w.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, each := range w.Unwrap() {
			if !isEachError(each, holds) {
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
	return isEachError(err, func(err error) bool {
		e, ok := err.(*kube.Error) //nolint:errorlint // isEachError unwraps
		return ok && (kube.IsConflict(e) && !kube.IsApplyConflict(e) || kube.IsUIDConflict(e) || kube.IsNamespaceTerminating(e))
	})
}

// serverDelay returns the longest delay that a server asked for in the errors in err.
func serverDelay(err error) (d time.Duration) {
	isEachError(err, func(err error) bool {
		if e, ok := err.(*kube.Error); ok { //nolint:errorlint // isEachError unwraps
			d = max(d, e.RetryDelay())
		}
		return false
	})
	return d
}
