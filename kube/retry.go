package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// retry is a Handler that repeats requests that failed for a transient reason, if that is safe:
//
//   - A request that the server did not accept (429, or no connection) is always repeated.
//   - A read is always repeated.
//   - A write that may have been carried out is repeated if doing it twice has the
//     effect of doing it once: an apply; a replace that names the resourceVersion; a delete
//     that names the uid. If the repetition is refused because an earlier attempt succeeded,
//     the write counts as a success. A create, other patches and unconditional deletes are not
//     repeated.
//
// Watches and other streams are not repeated: package watch knows where a watch goes on.
type retry struct {
	next Handler
	// limit is the time within which all attempts must begin, and the time for which the
	// server may be silent in all of them together.
	limit time.Duration
}

const retryAttempts = 5

// Do passes r on, at most five times.
func (h retry) Do(ctx context.Context, r *Request) (*Response, error) {
	if r.isStream() {
		return h.next.Do(ctx, r)
	}
	began, caller := time.Now(), ctx
	ctx, timeout, cancel := withAnswerTimeout(caller, h.limit)
	defer cancel()
	unknown := false // an earlier attempt may have been carried out
	for attempt := 1; ; attempt++ {
		response, err := h.next.Do(ctx, r)
		if err == nil {
			return response, nil
		}
		e, ok := AsError(err)
		if !ok {
			return nil, err
		}
		if unknown && e.Code >= 400 && e.Code < 500 {
			if response, ok := h.ownSuccess(ctx, r, e); ok {
				return response, nil
			}
		}
		unknown = unknown || e.Unknown
		e.Unknown = unknown && r.Verb.IsWrite()
		wait, again := h.again(r, e, attempt)
		if !again || ctx.Err() != nil {
			return nil, err
		}
		next := time.Now().Add(wait)
		if end, ok := caller.Deadline(); ok && next.After(end) || next.Sub(began)-timeout.paused > h.limit {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, interrupted(caller, e)
		}
	}
}

// interrupted returns the error for a caller that stopped waiting for the next attempt: e with the
// error of the caller's context before its own. If the caller still waits, it returns e.
func interrupted(caller context.Context, e *Error) error {
	if caller.Err() == nil {
		return e
	}
	before := e.Err
	if before == nil {
		before = errors.New(e.Answer.Message)
	}
	gone := *e
	gone.Err, gone.permanent = fmt.Errorf("%w, after: %w", callerGone(caller), before), true
	return &gone
}

// again reports whether to repeat r after e, and after which wait.
func (h retry) again(r *Request, e *Error, attempt int) (time.Duration, bool) {
	if attempt == retryAttempts || !isTransient(r, e) {
		return 0, false
	}
	if e.Unknown && !isRepeatable(r) {
		return 0, false
	}
	backoff := 100 * time.Millisecond << (attempt - 1)
	backoff = backoff/2 + rand.N(backoff)
	return max(backoff, e.RetryDelay()), true
}

// isTransient reports whether a failure may be over soon.
func isTransient(r *Request, e *Error) bool {
	switch {
	case e.permanent:
		return false
	case e.Code == 0:
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](e.Err)
		return !untrusted
	case e.Code == http.StatusTooManyRequests:
		// A disruption budget refuses an eviction with the same code.
		return r.Subresource != "eviction"
	default:
		return e.Code >= 500 && e.Code != http.StatusNotImplemented
	}
}

// isRepeatable reports whether carrying out r twice has the effect of carrying it out once.
func isRepeatable(r *Request) bool {
	switch r.Verb {
	case VerbUpdate:
		return r.Preconditions.ResourceVersion != ""
	case VerbDelete:
		return r.Preconditions.UID != ""
	case VerbPatch:
		return r.ContentType == ContentApply
	default:
		return !r.Verb.IsWrite()
	}
}

// ownSuccess returns the answer of a write whose repetition was refused with e, if the
// refusal only shows that an earlier attempt was carried out.
func (h retry) ownSuccess(ctx context.Context, r *Request, e *Error) (*Response, bool) {
	switch r.Verb {
	case VerbDelete:
		// The object of that uid is gone, or is being deleted.
		if IsNotFound(e) || IsUIDConflict(e) || IsConflict(e) && h.isDeleted(ctx, r) {
			return &Response{Code: http.StatusOK, Body: []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)}, true
		}
	case VerbUpdate:
		if IsNotFound(e) && isLastWord(r.Body) {
			return &Response{Code: http.StatusOK, Body: r.Body}, true
		}
		if !IsConflict(e) {
			return nil, false
		}
		live, err := h.next.Do(ctx, readOf(r))
		if err == nil && r.Representation == Full && isSameObject(live.Body, r.Body) {
			return live, true
		}
	}
	return nil, false
}

// readOf returns the request that reads the object of the write r.
func readOf(r *Request) *Request {
	return &Request{
		Cluster: r.Cluster, Verb: VerbGet, Resource: r.Resource, Namespace: r.Namespace,
		Name: r.Name, Subresource: r.Subresource, Representation: r.Representation,
	}
}

// isDeleted reports whether the object that r deletes is gone or is being deleted: such a Namespace
// refuses a second delete. It reports false for a delete with a resourceVersion, which may have lost
// to somebody else's delete.
func (h retry) isDeleted(ctx context.Context, r *Request) bool {
	if r.Preconditions.ResourceVersion != "" {
		return false
	}
	live, err := h.next.Do(ctx, readOf(r))
	if err != nil {
		return IsNotFound(err)
	}
	var object struct {
		Metadata fate `json:"metadata"`
	}
	return Unmarshal(live.Body, &object) == nil &&
		(object.Metadata.DeletionTimestamp != nil || object.Metadata.UID != r.Preconditions.UID)
}

// isLastWord reports whether body is an object that is being deleted and has no finalizer any
// more: storing it removes the object.
func isLastWord(body []byte) bool {
	var object struct {
		Metadata fate `json:"metadata"`
	}
	return Unmarshal(body, &object) == nil &&
		object.Metadata.DeletionTimestamp != nil && len(object.Metadata.Finalizers) == 0
}

// fate is the metadata that decides about the end of an object.
type fate struct {
	UID               types.UID    `json:"uid"`
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	Finalizers        []string     `json:"finalizers"`
}
