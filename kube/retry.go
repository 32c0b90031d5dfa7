package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// retry is a Handler that repeats requests after a transient failure, if the repetition is safe:
//
//   - A request that the server did not accept is repeated. The server did not accept it if the answer is 429, there was no
//     connection, or the answer is a 503 of an API server that did not begin with the request. An eviction with 429 is not
//     repeated, because a disruption budget has refused it.
//   - A read is repeated.
//   - A write that may have been carried out is repeated if doing it twice has the
//     effect of doing it once: an apply; a replace that names the resourceVersion; a delete
//     that names the uid. If the repetition of a replace or a delete is refused because an earlier attempt succeeded,
//     the write counts as a success. The repetition of an apply that names the resourceVersion can end with a conflict,
//     which says that the outcome is unknown. A create, other patches and unconditional deletes are not repeated.
//
// A request is not repeated after an error that will not go away: a Permanent error, a certificate that is not
// trusted, the failure of a credential plugin, a final refusal (see finalRefusals), or the code 500 with the same
// message twice in a row. Such a pair does not say whether the write was carried out, because a server can fail after
// it has stored the object.
//
// An example: the connection breaks after an apply was sent. The apply may have been carried out. It is
// sent again after 50 to 150 ms, because two equal applies have the effect of one. A create is not sent
// again, and its error is Unknown.
//
// Watches and other streams are not repeated: package internal/follow knows where a watch goes on.
type retry struct {
	next wire.Handler
	// timeout is [Config.Timeout]: how long the server may be silent in all attempts together. No attempt begins when this
	// time has passed since the first one began. The time in which an attempt waits for credentials or for the limit on
	// writes does not count.
	timeout time.Duration
}

const retryAttempts = 5

// Do passes r on, at most five times.
func (h retry) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if isStreamed(r) {
		return h.next.Do(ctx, r)
	}
	began, caller := time.Now(), ctx
	ctx, silence, cancel := withAnswerTimeout(caller, h.timeout)
	defer cancel()
	unknown := false // an earlier attempt may have been carried out
	var before *wire.Error
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
			if response, ok := (earlierSuccess{h.next}).answer(ctx, r, e); ok {
				return response, nil
			}
		}
		unknown = unknown || e.Unknown
		e.Unknown = unknown && r.Verb.IsWrite()
		if !shouldRetry(r, e, attempt) || isSameFailure(before, e) || ctx.Err() != nil {
			return nil, err
		}
		before = e
		wait := retryWait(e, attempt)
		next := time.Now().Add(wait)
		if end, ok := caller.Deadline(); ok && next.After(end) || next.Sub(began)-silence.paused > h.timeout {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, waitEndedError(caller, e)
		}
	}
}

// waitEndedError returns the error of a wait for the next attempt that has ended early. If the caller has stopped
// waiting, it is e with the error of the caller's context before its own. Otherwise the server was silent for too long,
// and it is e.
func waitEndedError(caller context.Context, e *wire.Error) error {
	if caller.Err() == nil {
		return e
	}
	before := e.Err
	if before == nil {
		before = errors.New(e.Answer.Message)
	}
	gone := *e
	gone.Err, gone.Permanent = fmt.Errorf("%w, after: %w", contextError(caller), before), true
	return &gone
}

// shouldRetry reports whether to repeat r after attempt has failed with e.
func shouldRetry(r *wire.Request, e *wire.Error, attempt int) bool {
	// A denial may have taken a webhook its whole time, so only what is repeatable anyway is sent again.
	return attempt < retryAttempts && isTransient(r, e) &&
		(!e.Unknown && !(e.Code >= 500 && isDenial(&e.Answer)) || isRepeatable(r))
}

// isSameFailure reports whether an API server has answered two attempts in a row with the code 500 and the same
// message. before is nil for the first attempt. A server that asks for a repetition has not decided. The text of a
// proxy is always the same.
func isSameFailure(before, e *wire.Error) bool {
	return before != nil && before.Code == http.StatusInternalServerError && e.Code == before.Code &&
		e.Answer.Kind == "Status" && e.Answer.Message == before.Answer.Message && e.RetryAfter == 0
}

// retryWait returns the wait after attempt: about 100 ms after the first attempt, and twice as long after
// each further attempt, or what the server asks for if that is longer.
func retryWait(e *wire.Error, attempt int) time.Duration {
	backoff := 100 * time.Millisecond << (attempt - 1)
	backoff = backoff/2 + rand.N(backoff)
	return max(backoff, e.RetryDelay())
}

// isTransient reports whether a failure may be over soon.
func isTransient(r *wire.Request, e *wire.Error) bool {
	switch {
	case e.Permanent:
		return false
	case e.Code == 0:
		_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](e.Err)
		_, isWithoutCredentials := errors.AsType[*pluginError](e.Err)
		return !isUntrusted && !isWithoutCredentials
	case e.Code == http.StatusTooManyRequests:
		// A disruption budget refuses an eviction with the same code.
		return r.Subresource != "eviction"
	default:
		return e.Code >= 500 && e.Code != http.StatusNotImplemented && !isFinalRefusal(&e.Answer)
	}
}

// isRepeatable reports whether carrying out r twice has the effect of carrying it out once.
func isRepeatable(r *wire.Request) bool {
	switch r.Verb {
	case wire.VerbUpdate:
		return r.Preconditions.ResourceVersion != ""
	case wire.VerbDelete:
		return r.Preconditions.UID != ""
	case wire.VerbPatch:
		return r.ContentType == wire.ContentApply
	default:
		return !r.Verb.IsWrite()
	}
}
