package convert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/calls/serving"
)

// Options are what a Handler needs besides its kinds. All of them have defaults.
type Options struct {
	// Logger is the logger of the program. Default: slog.Default().
	Logger *slog.Logger
	// Observer counts calls and conversions. Default: nobody does.
	Observer Observer
	// MaxCalls bounds the calls of each kind in flight. A function that goes on after the deadline of its call counts
	// until it returns. Default: 64.
	MaxCalls int
}

const (
	defaultMaxCalls = 64
	// defaultTimeout is the timeout of a call without the parameter timeout. API servers have the same default.
	defaultTimeout = 30 * time.Second
	// retryAfter is the wait that answers ask for, in seconds.
	retryAfter = "1"
)

// maxBody bounds the body of a call, in bytes. API servers accept objects of 3 MiB, and mostly convert one object in a
// call.
const maxBody = 32 << 20

// Handler answers the calls of the API server that convert objects. It answers with all objects, or with an HTTP error.
// A Handler is safe for concurrent use.
type Handler struct {
	endpoints map[string]*endpoint
	log       *slog.Logger
	failures  failureLog
	observer  Observer
	capacity  serving.Capacity
}

// endpoint is a kind of a Handler.
type endpoint struct {
	kind *Kind
	// live is kind with the schemas of the cluster, or nil.
	live atomic.Pointer[liveKind]
	// calls has a place for each call whose function has not returned.
	calls *serving.Places
}

// liveKind is a Kind with the schemas of the cluster, and the time from which it is used. Until then before is used.
type liveKind struct {
	kind   *Kind
	from   time.Time
	before *Kind
}

// kindAt returns the kind that converts the objects of a call that begins at t.
func (e *endpoint) kindAt(t time.Time) *Kind {
	switch live := e.live.Load(); {
	case live == nil:
		return e.kind
	case t.Before(live.from):
		return live.before
	default:
		return live.kind
	}
}

// UseSchemas makes the Handler convert the objects of the kind of a path with the schemas that the cluster has, by the
// names of the versions: see [Kind.WithLiveSchemas]. The schemas are used after a delay. Until then each API server has
// seen them, and the Handler uses the schemas that it has used before. A schema that cannot be used is logged.
func (h *Handler) UseSchemas(path string, schemas map[string]*crd.Schema, delay time.Duration) {
	e := h.endpoints[path]
	if e == nil {
		return
	}
	kind, err := e.kind.WithLiveSchemas(schemas)
	if err != nil {
		e.live.Store(nil)
		h.log.Warn("the fields that only the CustomResourceDefinition of the cluster has are not converted",
			"kind", e.kind.resource.String(), "error", err)
		return
	}
	now := time.Now()
	e.live.Store(&liveKind{kind: kind, from: now.Add(delay), before: e.kindAt(now)})
}

// NewHandler returns a Handler of kinds. It returns an error if two kinds have one path.
func NewHandler(kinds []*Kind, options Options) (*Handler, error) {
	h := &Handler{endpoints: make(map[string]*endpoint), log: options.Logger, observer: options.Observer}
	if h.log == nil {
		h.log = slog.Default()
	}
	h.failures.log = h.log
	if h.observer == nil {
		h.observer = noObserver{}
	}
	if options.MaxCalls <= 0 {
		options.MaxCalls = defaultMaxCalls
	}
	for _, k := range kinds {
		if h.endpoints[k.Path()] != nil {
			return nil, fmt.Errorf("the conversion of %s is declared twice: give all steps of a kind to one conversion",
				k.GroupKind())
		}
		h.endpoints[k.Path()] = &endpoint{kind: k, calls: serving.NewPlaces(int64(options.MaxCalls))}
	}
	return h, nil
}

// HasPath reports whether the path of a URL is the path of a kind of h.
func (h *Handler) HasPath(path string) bool { return h.endpoints[path] != nil }

// Wait waits until no call is in flight and each function has returned, also those that were too slow. It returns an
// error if ctx ends before. The caller stops the server first.
func (h *Handler) Wait(ctx context.Context) error { return h.capacity.Wait(ctx) }

// ServeHTTP answers a call.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.capacity.Begin()
	defer h.capacity.End()
	e := h.endpoints[r.URL.Path]
	if e == nil {
		// Another replica, of another release, may know the kind.
		h.log.Debug("a call of an unknown conversion", "path", r.URL.Path)
		writeError(w, http.StatusServiceUnavailable, errors.New("this replica has no conversion with the path "+r.URL.Path))
		return
	}
	began := time.Now()
	a := h.answerCall(w, r, e, began)
	h.observer.ObserveCall(e.kind.resource.String(), a.result, a.objects, time.Since(began))
}

// answer is the answer to a call: a ConversionReview, or an HTTP error.
type answer struct {
	result CallResult
	body   []byte
	// objects is the number of objects of the call, as far as it was read.
	objects int
	// httpCode and err are those of an HTTP error.
	httpCode int
	err      error
}

// errorAnswer returns an answer that is an HTTP error.
func errorAnswer(code int, result CallResult, err error) *answer {
	return &answer{httpCode: code, result: result, err: err}
}

// answerCall answers a call of e, and returns the answer. The body is read before the call takes a place: a slow caller
// has none. It counts until the answer, which is about as large, has been written.
func (h *Handler) answerCall(w http.ResponseWriter, r *http.Request, e *endpoint, began time.Time) *answer {
	body, refusal := h.capacity.ReadBody(w, r, maxBody)
	if refusal == nil {
		defer body.Release()
		a := h.convertBody(r, e, body, began)
		if a.err == nil {
			serving.WriteAnswer(w, a.body)
			return a
		}
		if !errors.As(a.err, &refusal) {
			level := slog.LevelWarn
			if a.result == CallFailed {
				level = slog.LevelError
			}
			h.log.Log(context.Background(), level, "a call of a conversion is not answered",
				"kind", e.kind.resource.String(), "error", a.err.Error())
			writeError(w, a.httpCode, a.err)
			return a
		}
	}
	h.capacity.LogRefusal(h.log, r, refusal)
	result := CallFailed
	if refusal.IsOverload() {
		result = CallOverload
	}
	writeError(w, refusal.Code, refusal)
	return errorAnswer(refusal.Code, result, refusal)
}

// convertBody returns the answer to a call of e with this body. Its error is a [serving.Refusal] if e has no place for
// the call.
func (h *Handler) convertBody(r *http.Request, e *endpoint, body *serving.Body, began time.Time) *answer {
	ctx, cancel := context.WithDeadline(r.Context(), began.Add(functionTimeout(r.URL.RawQuery)))
	defer cancel()
	place, refusal := serving.TakePlace(ctx, e.calls, r)
	if refusal != nil {
		return &answer{err: refusal}
	}
	answers := make(chan *answer, 1)
	body.Retain()
	h.capacity.Begin()
	go func() {
		defer h.capacity.End()
		defer body.Release()
		defer place.Release()
		answers <- h.convert(ctx, e.kindAt(began), body.Bytes)
	}()
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		return endedCallAnswer(ctx)
	}
}

// endedCallAnswer returns the answer to a call whose context has ended.
func endedCallAnswer(ctx context.Context) *answer {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errorAnswer(http.StatusGatewayTimeout, CallFailed,
			errors.New("the functions of the conversion did not return in time"))
	}
	return errorAnswer(http.StatusServiceUnavailable, CallUnavailable, ctx.Err()) // the API server does not wait any more
}

// convert returns the answer to a call with this body. It ends early if ctx ends.
func (h *Handler) convert(ctx context.Context, k *Kind, body []byte) *answer {
	review, err := parseReview(body)
	switch {
	case errors.Is(err, errOtherReview):
		return errorAnswer(http.StatusServiceUnavailable, CallUnavailable, err) // another replica may know the version
	case err != nil:
		return errorAnswer(http.StatusBadRequest, CallFailed, err)
	case review.group != k.resource.Group:
		return errorAnswer(http.StatusServiceUnavailable, CallUnavailable,
			fmt.Errorf("%s/%s is no version of %s: %w", review.group, review.version, k.GroupKind(), ErrUnknownVersion))
	}
	type outcome struct {
		from   string
		result Result
	}
	counts := make(map[outcome]int)
	objects := make([][]byte, 0, len(review.objects))
	for _, each := range review.objects {
		if ctx.Err() != nil {
			return endedCallAnswer(ctx)
		}
		c, err := k.Convert(each, review.version)
		if err != nil {
			a := errorAnswer(http.StatusBadRequest, CallFailed, err)
			if errors.Is(err, ErrUnknownVersion) {
				a = errorAnswer(http.StatusServiceUnavailable, CallUnavailable, err)
			}
			a.objects = len(review.objects)
			return a
		}
		h.failures.logFailures(k, &c)
		result := ResultConverted
		if c.IsIncomplete {
			result = ResultIncomplete
		}
		counts[outcome{c.From, result}]++
		objects = append(objects, c.Object)
	}
	for each, n := range counts {
		h.observer.ObserveConversions(k.resource.String(), each.from, review.version, each.result, n)
	}
	return &answer{result: CallAnswered, body: review.encode(objects), objects: len(objects)}
}

// functionTimeout returns how long a call may take if the API server sends a query, such as timeout=10s. The answer
// needs a part of the time.
func functionTimeout(query string) time.Duration {
	timeout, _ := strings.CutPrefix(query, "timeout=")
	d, err := time.ParseDuration(timeout)
	if err != nil || d <= 0 {
		d = defaultTimeout
	}
	return d - min(max(d/10, 100*time.Millisecond), time.Second)
}

// writeError answers a call without a ConversionReview. The API server repeats the call after 429 and 503, on another
// connection.
func writeError(w http.ResponseWriter, code int, err error) {
	header := w.Header()
	header.Set("Connection", "close")
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	http.Error(w, err.Error(), code)
}
