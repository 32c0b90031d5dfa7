package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
)

// maxRetryDelay is the longest wait that a server can ask for. A proxy on the way that asks
// for a day must not stop a program for a day.
const maxRetryDelay = time.Minute

// Error describes a request that did not succeed: the verb and the object, and the answer of the server or
// the reason why there is none.
type Error struct {
	// Verb, Ref and Subresource name the request.
	Verb        Verb
	Ref         Ref
	Subresource string
	// Code is the HTTP status of the answer. It is 0 if there was no answer.
	Code int
	// Answer is the Status that the server sent. If the server sent none, it is made from the HTTP answer.
	Answer metav1.Status
	// RetryAfter is the wait that the server asks for, without a bound. Use [Error.RetryDelay] to wait.
	RetryAfter time.Duration
	// Unknown is true for a write that may have been carried out although it failed.
	Unknown bool
	// Err is the cause on this side: there was no answer, an answer could not be read, or the caller stopped waiting. It
	// is nil for an answer of the server.
	Err error
	// Permanent is true for a request that failed on this side and would fail again: the request
	// cannot be sent at all, or its caller did not wait for the answer.
	Permanent bool
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
		b.WriteString(ident.Quoted(e.Ref.Namespace, e.Ref.Name))
	} else if e.Ref.Namespace != "" {
		fmt.Fprintf(&b, " in namespace %q", e.Ref.Namespace)
	}
	b.WriteString(": ")
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		if e.Code == http.StatusNotFound && (e.Answer.Details == nil || e.Answer.Details.Name == "") {
			fmt.Fprintf(&b, "the server does not serve this resource in version %s; is its CustomResourceDefinition applied? ",
				e.Ref.Resource.Version)
		}
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

// RetryDelay returns the wait that the server asks for before the next attempt, at most a minute. It is zero if the
// server asks for none.
func (e *Error) RetryDelay() time.Duration { return min(max(e.RetryAfter, 0), maxRetryDelay) }

// NewError returns an Error about r. The caller sets Code and Answer, or Err.
func NewError(r *Request) *Error {
	ref := r.Ref()
	ref.UID = ""
	return &Error{Verb: r.Verb, Ref: ref, Subresource: r.Subresource}
}

// DecodeError describes an object of the server that does not fit its Go type. Ref and
// ResourceVersion have only what could be read of the object's metadata. Err is the cause.
type DecodeError struct {
	Ref             Ref
	ResourceVersion string
	Err             error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s: %v", e.Ref, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }
