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

// Error describes a request that did not succeed: what was tried on which object, and what the
// server answered, or why it could not be asked.
type Error struct {
	Verb        Verb
	Ref         Ref
	Subresource string
	// Code is the HTTP status of the answer. It is 0 if there was no answer.
	Code int
	// Answer is the server's own Status, made up from the HTTP status where it sent none.
	Answer metav1.Status
	// RetryAfter is the wait that the server asks for, as it asks. Use RetryDelay to wait.
	RetryAfter time.Duration
	// Unknown is true for a write that may have been carried out although it failed.
	Unknown bool
	// Err is the cause when there was no answer.
	Err error
	// permanent is true for a request that failed on this side and would fail again: one that
	// cannot be sent at all, or one that its caller did not wait for.
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

// Status returns the server's answer. With it the functions of apimachinery's package errors
// understand an Error.
func (e *Error) Status() metav1.Status { return e.Answer }

// MaxRetryDelay is the longest wait that a server can ask for. A proxy on the way that asks
// for a day must not stop a program for a day.
const MaxRetryDelay = time.Minute

// RetryDelay returns the wait that the server asks for before the next attempt, at most
// [MaxRetryDelay]. It is zero if the server asks for none.
func (e *Error) RetryDelay() time.Duration { return min(max(e.RetryAfter, 0), MaxRetryDelay) }

// newError returns an Error about r.
func newError(r *Request) *Error {
	ref := r.Ref()
	ref.UID = ""
	return &Error{Verb: r.Verb, Ref: ref, Subresource: r.Subresource}
}

// AsError returns the first Error in the tree of err. It reports false if there is none.
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

// IsNotFound reports whether the server knows the resource and has no such object. That it
// does not know the resource is not included: see [IsNoResource].
func IsNotFound(err error) bool {
	return hasReason(err, http.StatusNotFound, metav1.StatusReasonNotFound) && !IsNoResource(err)
}

// IgnoreNotFound returns nil if err reports that the object is gone, and err otherwise: that
// there is none of its name ([IsNotFound]), or another one ([IsUIDConflict]).
func IgnoreNotFound(err error) error {
	if IsNotFound(err) || IsUIDConflict(err) {
		return nil
	}
	return err
}

// IsNoResource reports whether the server does not serve the resource at all. The
// CustomResourceDefinition of a custom resource does not exist, or not yet.
func IsNoResource(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == http.StatusNotFound && (e.Answer.Details == nil || e.Answer.Details.Name == "")
}

// IsAlreadyExists reports whether a create failed because an object of that name exists.
func IsAlreadyExists(err error) bool { return hasReason(err, 0, metav1.StatusReasonAlreadyExists) }

// IsConflict reports whether a write failed because the object has changed since it was read,
// because it is not the one that a precondition names, or because another field manager owns a
// field. See [IsUIDConflict] and [IsApplyConflict].
func IsConflict(err error) bool {
	return hasReason(err, http.StatusConflict, metav1.StatusReasonConflict)
}

// IsApplyConflict reports whether an apply with [NoForce] failed because other field managers
// own fields that were to be applied. The causes in the error's Answer name them.
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

// IsUIDConflict reports whether a write failed for no other reason than that the object of
// that name is not the one that was meant: it was deleted and made anew.
func IsUIDConflict(err error) bool {
	e, ok := AsError(err)
	switch {
	case !ok:
		return false
	case IsConflict(err):
		// The registry and the storage of an API server find it, each with words of its own.
		// A conflict over the resourceVersion does not differ in anything else.
		return strings.Contains(e.Answer.Message, "UID in the precondition") ||
			strings.Contains(e.Answer.Message, "UID in precondition")
	case IsInvalid(err) && e.Answer.Details != nil && len(e.Answer.Details.Causes) > 0:
		// To an apply of most resources the server says that the uid cannot be changed.
		for _, cause := range e.Answer.Details.Causes {
			if cause.Field != "metadata.uid" {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// IsNamespaceTerminating reports whether the object could not be created because its namespace
// is being deleted.
func IsNamespaceTerminating(err error) bool {
	e, ok := AsError(err)
	return ok && e.Answer.Details != nil && slices.ContainsFunc(e.Answer.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == "NamespaceTerminating"
	})
}

// IsInvalid reports whether the server found the object, or a JSON patch, to be wrong. The
// causes in the error's Answer name the fields.
func IsInvalid(err error) bool {
	return hasReason(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
}

// IsBadRequest reports whether the server did not understand the request.
func IsBadRequest(err error) bool {
	return hasReason(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

// IsForbidden reports whether the account may not do this.
func IsForbidden(err error) bool {
	return hasReason(err, http.StatusForbidden, metav1.StatusReasonForbidden)
}

// IsUnauthorized reports whether the server does not accept the credentials.
func IsUnauthorized(err error) bool {
	return hasReason(err, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
}

// IsGone reports whether a resourceVersion or a continue token is too old to go on from. It
// does not concern objects that were deleted: see [IsNotFound].
func IsGone(err error) bool {
	return hasReason(err, http.StatusGone, metav1.StatusReasonExpired, metav1.StatusReasonGone)
}

// IsTooManyRequests reports whether the server, or a disruption budget, asks to wait.
func IsTooManyRequests(err error) bool {
	return hasReason(err, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
}

// IsUnknown reports whether a write may have been carried out although it failed: the
// connection broke, or the server gave up waiting for it.
func IsUnknown(err error) bool {
	e, ok := AsError(err)
	return ok && e.Unknown
}

// IsUnreachable reports whether there was no answer at all, although the caller waited for
// one.
func IsUnreachable(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == 0 && !e.permanent
}
