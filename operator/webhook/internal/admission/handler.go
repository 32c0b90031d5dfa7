// Package admission answers the API server's calls to the webhooks of a program: a validator refuses objects, a defaulter
// adds fields to them, and a mutator changes objects of kinds of others. The package has neither a listener nor certificates. A [Handler] is an [http.Handler].
//
// A call passes these steps. Each step can answer the call:
//
//	path       no webhook of this program has the path: HTTP 503 with Retry-After
//	length     the length of the body is missing or too large: HTTP 411 or 413
//	capacity   too many calls or bytes at once: HTTP 429 with Retry-After
//	review     the body is no AdmissionReview of version v1: HTTP 400 or 503
//	scope      the object is outside of the program's namespaces, or the defaulter has nothing to do: allowed
//	function   the function of the author returns, panics or is too slow: an AdmissionReview, or HTTP 500 or 503
//
// The API server repeats a call after HTTP 429 and 503 with Retry-After, within the timeout of the webhook. So these
// answers close the connection: another replica may be able to answer. No answer allows what the program does not know.
package admission

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/serving"
)

// Options are what a Handler needs besides its webhooks.
type Options struct {
	// Client is what the functions of validators read by. It is required. Writes by it never reach the server. It must
	// not have the fence of a leader, because each replica answers.
	Client *kube.Client
	// Namespaces are the namespaces that the program watches. Requests in other namespaces are allowed without a
	// call of a function. Default: all namespaces.
	Namespaces []string
	// IsStrict is true in development and in tests: a field path that the type lacks, a defaulter that changes or
	// removes something, and a defaulter whose second call changes something are errors.
	IsStrict bool
	// Logger is the logger of the program. Default: slog.Default().
	Logger *slog.Logger
	// Observer counts calls. Default: nobody does.
	Observer Observer
	// MaxCalls bounds the calls of each webhook in flight. A function that goes on after its deadline counts until it
	// returns. Default: 64.
	MaxCalls int
}

const (
	defaultMaxCalls = 64
	// defaultTimeout is the timeout of a call without the parameter timeout. API servers have the same default.
	defaultTimeout = 10 * time.Second
	// retryAfter is the wait that answers ask for, in seconds.
	retryAfter = "1"
)

// maxBody bounds the body of a call, in bytes. An API server accepts objects of 3 MiB, and a call has two.
const maxBody = 7 << 20

// Handler answers the calls of the API server to webhooks. The context of a function ends before the timeout that the
// API server sends: earlier by a tenth of the timeout, by at least 100 ms and at most 1 s. Then the Handler answers
// that the function is too slow, with the code 504, and does not wait for the function. A Handler is safe for
// concurrent use.
type Handler struct {
	endpoints  []*endpoint
	namespaces []string
	log        *slog.Logger
	observer   Observer
	capacity   serving.Capacity
}

// NewHandler returns a Handler of webhooks. Errors: those of [Check], a type without a CustomResourceDefinition, and no
// Client.
func NewHandler(webhooks []*Webhook, options Options) (*Handler, error) {
	if options.Client == nil {
		return nil, errors.New("the webhooks have no client: set admission.Options.Client")
	}
	if err := Check(webhooks); err != nil {
		return nil, err
	}
	h := &Handler{namespaces: options.Namespaces, log: options.Logger, observer: options.Observer}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.observer == nil {
		h.observer = noObserver{}
	}
	if options.MaxCalls <= 0 {
		options.MaxCalls = defaultMaxCalls
	}
	for _, each := range webhooks {
		e, err := newEndpoint(each, options)
		if err != nil {
			return nil, err
		}
		h.endpoints = append(h.endpoints, e)
	}
	return h, nil
}

// Wait waits until no call is in flight and each function has returned, also those that were too slow. It returns an
// error if ctx ends before. The caller stops the server first.
func (h *Handler) Wait(ctx context.Context) error { return h.capacity.Wait(ctx) }

// ServeHTTP answers a call.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.capacity.Begin()
	defer h.capacity.End()
	for _, e := range h.endpoints {
		if e.path == r.URL.Path {
			began := time.Now()
			operation, a := h.serveCall(w, r, e, began)
			if a.httpCode != 0 {
				writeError(w, a.httpCode, a.err.Error())
			}
			h.observer.ObserveCall(e.webhook.Name(), operation, a.result, time.Since(began))
			return
		}
	}
	// Another replica, of another release, may know the path.
	h.log.Debug("a call of an unknown webhook", "path", r.URL.Path)
	writeError(w, http.StatusServiceUnavailable, "this replica has no webhook with the path "+r.URL.Path)
}

// refuse logs a refusal, and returns the answer.
func (h *Handler) refuse(r *http.Request, refusal *serving.Refusal) *answer {
	h.capacity.LogRefusal(h.log, r, refusal)
	result := ResultFailed
	if refusal.IsOverload() {
		result = ResultOverload
	}
	return errorAnswer(refusal.Code, result, refusal)
}

// serveCall answers a call of e, unless the answer is an HTTP error. It returns the operation, as far as it was read,
// and the answer. The body is read before the call takes a place: a slow caller has none.
func (h *Handler) serveCall(w http.ResponseWriter, r *http.Request, e *endpoint, began time.Time) (string, *answer) {
	body, refusal := h.capacity.ReadBody(w, r, maxBody)
	if refusal != nil {
		return "", h.refuse(r, refusal)
	}
	defer body.Release()
	request, a := e.parseRequest(body.Bytes)
	if a != nil {
		return "", a
	}
	ctx, cancel := context.WithDeadline(r.Context(), began.Add(functionTimeout(r.URL.RawQuery)))
	defer cancel()
	state := &callState{Call: request.Call}
	if h.concerns(e, request) {
		place, refusal := serving.TakePlace(ctx, e.calls, r)
		if refusal != nil {
			return request.Operation, h.refuse(r, refusal)
		}
		body.Retain()
		a = callFunction(context.WithValue(ctx, callKey{}, state), h, e, request, func() {
			place.Release()
			body.Release()
		})
	} else {
		a = allowedAnswer()
	}
	if a.status != nil && a.result == ResultFailed && e.webhook.mayPassFailed() && !e.isStrict {
		// An API server lets the request pass after an HTTP error, by the failure policy.
		a.httpCode, a.err, a.status = http.StatusInternalServerError, errors.New(a.text()), nil
	}
	h.reportAnswer(e, request, a)
	if a.httpCode == 0 {
		serving.WriteAnswer(w, a.encode(request.uid, state.currentWarnings()))
	}
	return request.Operation, a
}

// functionTimeout returns how long a function may take if the API server sends a query, such as timeout=10s.
func functionTimeout(query string) time.Duration {
	timeout, _ := strings.CutPrefix(query, "timeout=")
	d, err := time.ParseDuration(timeout)
	if err != nil || d <= 0 {
		d = defaultTimeout
	}
	return d - min(max(d/10, 100*time.Millisecond), time.Second)
}

// concerns reports whether the function of e has to be called for a request.
func (h *Handler) concerns(e *endpoint, r *request) bool {
	if len(h.namespaces) > 0 && r.namespace != "" && !slices.Contains(h.namespaces, r.namespace) {
		return false
	}
	return !e.webhook.IsMutating ||
		r.object != nil && memberOf(memberOf(r.object, "metadata"), "deletionTimestamp") == nil
}

// reportAnswer logs an answer, and counts what a defaulter wanted to change or remove. It logs texts of functions about
// the object only at the level debug.
func (h *Handler) reportAnswer(e *endpoint, r *request, a *answer) {
	if a.dropped > 0 {
		h.observer.ObserveDropped(e.webhook.Name(), a.dropped)
	}
	level, text := slog.LevelError, "a webhook failed"
	switch a.result {
	case ResultAllowed:
		return
	case ResultRefused:
		level, text = slog.LevelDebug, "a webhook refused a request"
	case ResultUnavailable:
		level, text = slog.LevelWarn, "a webhook cannot answer for now"
	}
	log := h.log
	if a.stack != "" {
		log = log.With("stack", a.stack)
	}
	log.Log(context.Background(), level, text,
		"webhook", e.webhook.Name(), "operation", r.Operation, "namespace", r.namespace, "name", r.name, "error", a.text())
}

// writeError answers a call without an AdmissionReview. The API server repeats the call after 429 and 503, on another
// connection.
func writeError(w http.ResponseWriter, code int, text string) {
	header := w.Header()
	header.Set("Connection", "close")
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	http.Error(w, text, code)
}
