package controller

import (
	"fmt"
	"runtime/debug"
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
		return ok && (kube.IsConflict(e) && !kube.IsApplyConflict(e) || isOtherUID(e) || kube.IsNamespaceTerminating(e))
	})
}

// isOtherUID tells that the object has been made anew since it was read. To an apply on a
// custom resource the server says so as if somebody wanted to change its uid.
func isOtherUID(e *kube.Error) bool {
	if !kube.IsInvalid(e) || e.Answer.Details == nil || len(e.Answer.Details.Causes) == 0 {
		return false
	}
	for _, cause := range e.Answer.Details.Causes {
		if cause.Field != "metadata.uid" {
			return false
		}
	}
	return true
}

// isGone tells that the object is not there; that the server does not know the resource
// says nothing about the object.
func isGone(err error) bool { return kube.IsNotFound(err) && !kube.IsNoResource(err) }

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

// panicError is a panic that became the error of one object.
type panicError struct {
	where string
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.where, e.value) }

// panicked is the error of a panic, to be called where it was recovered.
func panicked(where string, value any) error {
	return &panicError{where: where, value: value, stack: debug.Stack()}
}
