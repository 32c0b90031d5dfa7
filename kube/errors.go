package kube

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error is a request that did not succeed: what was tried on which object, and what the
// server said, or why it could not be asked.
type Error struct {
	Verb        Verb
	Ref         Ref
	Subresource string
	// Code is the HTTP status. 0: there was no answer.
	Code int
	// Answer is the server's own Status, made up from the HTTP status where it sent none.
	Answer metav1.Status
	// RetryAfter is the wait that the server asks for, as it asks. Use RetryDelay to wait.
	RetryAfter time.Duration
	// Unknown is true for a write that may have been carried out although it failed.
	Unknown bool
	// Err is the cause when there was no answer.
	Err error
	// permanent is true for what failed on this side and would do so again: what cannot be
	// asked at all, and what the caller did not wait for.
	permanent bool
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Verb))
	b.WriteByte(' ')
	b.WriteString(e.Ref.Resource.String())
	if e.Subresource != "" {
		b.WriteByte('/')
		b.WriteString(e.Subresource)
	}
	if e.Ref.Name != "" {
		b.WriteByte(' ')
		b.WriteString(quoted(e.Ref.Namespace, e.Ref.Name))
	} else if e.Ref.Namespace != "" {
		fmt.Fprintf(&b, " in namespace %q", e.Ref.Namespace)
	}
	b.WriteString(": ")
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(cmp.Or(e.Answer.Message, http.StatusText(e.Code), "the server gave no reason"))
		if e.Answer.Reason != "" {
			fmt.Fprintf(&b, " (%s)", e.Answer.Reason)
		} else {
			fmt.Fprintf(&b, " (HTTP %d)", e.Code)
		}
	}
	if e.Unknown {
		b.WriteString("; it may have been carried out all the same")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Status is the server's answer; with it the functions of apimachinery's package errors
// understand an Error.
func (e *Error) Status() metav1.Status { return e.Answer }

// MaxRetryDelay is the longest wait that a server can ask for. A proxy on the way that asks
// for a day must not stop a program for a day.
const MaxRetryDelay = time.Minute

// RetryDelay returns the wait that the server asks for before the next attempt, at most
// [MaxRetryDelay]. It is zero if the server asks for none.
func (e *Error) RetryDelay() time.Duration { return min(max(e.RetryAfter, 0), MaxRetryDelay) }

// newError is an Error about r.
func newError(r *Request) *Error {
	ref := r.Ref()
	ref.UID = ""
	return &Error{Verb: r.Verb, Ref: ref, Subresource: r.Subresource}
}

// AsError finds the Error in err.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

func hasReason(err error, code int, reasons ...metav1.StatusReason) bool {
	e, ok := AsError(err)
	if !ok || e.Code == 0 {
		return false
	}
	for _, reason := range reasons {
		if e.Answer.Reason == reason {
			return true
		}
	}
	return e.Answer.Reason == "" && e.Code == code
}

// IsNotFound tells that there is no such object, or that the server does not know the
// resource: see [IsNoResource].
func IsNotFound(err error) bool {
	return hasReason(err, http.StatusNotFound, metav1.StatusReasonNotFound)
}

// IsNoResource tells that the server does not serve the resource at all; for a custom
// resource: its CustomResourceDefinition is not there (yet).
func IsNoResource(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == http.StatusNotFound && (e.Answer.Details == nil || e.Answer.Details.Name == "")
}

// IsAlreadyExists tells that an object of that name is there.
func IsAlreadyExists(err error) bool { return hasReason(err, 0, metav1.StatusReasonAlreadyExists) }

// IsConflict tells that the object has changed since it was read, that it is not the one
// that a precondition names, or that another field manager owns a field: see
// [IsApplyConflict].
func IsConflict(err error) bool {
	return hasReason(err, http.StatusConflict, metav1.StatusReasonConflict)
}

// IsApplyConflict tells that other field managers own fields that were to be applied. The
// causes in the error's Answer name them.
func IsApplyConflict(err error) bool {
	e, ok := AsError(err)
	if !ok || !IsConflict(err) || e.Answer.Details == nil {
		return false
	}
	for _, cause := range e.Answer.Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			return true
		}
	}
	return false
}

// IsNamespaceTerminating reports whether the object could not be created because its namespace
// is being deleted.
func IsNamespaceTerminating(err error) bool {
	e, ok := AsError(err)
	return ok && e.Answer.Details != nil && slices.ContainsFunc(e.Answer.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == "NamespaceTerminating"
	})
}

// IsInvalid tells that the server found the object, or a JSON patch, to be wrong. The
// causes in the error's Answer name the fields.
func IsInvalid(err error) bool {
	return hasReason(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
}

// IsBadRequest tells that the server did not understand the request.
func IsBadRequest(err error) bool {
	return hasReason(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

// IsForbidden tells that the account may not do this.
func IsForbidden(err error) bool {
	return hasReason(err, http.StatusForbidden, metav1.StatusReasonForbidden)
}

// IsUnauthorized tells that the server does not accept the credentials.
func IsUnauthorized(err error) bool {
	return hasReason(err, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
}

// IsGone tells that a resourceVersion or a continue token is too old to go on from.
func IsGone(err error) bool {
	return hasReason(err, http.StatusGone, metav1.StatusReasonExpired, metav1.StatusReasonGone)
}

// IsTooManyRequests tells that the server, or a disruption budget, asks to wait.
func IsTooManyRequests(err error) bool {
	return hasReason(err, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
}

// IsUnknown tells that a write may have been carried out although it failed: the
// connection broke, or the server gave up waiting for it.
func IsUnknown(err error) bool {
	e, ok := AsError(err)
	return ok && e.Unknown
}

// IsUnreachable tells that there was no answer at all, although the caller waited for one.
func IsUnreachable(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == 0 && !e.permanent
}
