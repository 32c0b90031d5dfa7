package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
)

// singleRequest is the family of faults of one request: the program sends the request again, and the second try passes.
// See [denial] for writes that are denied again and again.
type singleRequest struct{ baseFamily }

// requestKind is a kind of the family.
type requestKind struct {
	kind Kind
	// isOptIn is true for a kind that happens only if somebody names it.
	isOptIn bool
	// canHappen reports whether the fault can happen at a point. code is the HTTP status of the answer in a reference.
	// canHappen is nil if the fault can happen at all points.
	canHappen func(p proxy.Point, code int) bool
	newHook   hookMaker
}

// hookMaker returns the hook that serves the request of an armed fault.
type hookMaker func(a *Armed, s stepContext) proxy.HookFunc

// requestKinds returns the kinds in the order in which points get them.
func requestKinds() []requestKind {
	isWrite := func(p proxy.Point, _ int) bool { return p.IsWrite() }
	return []requestKind{
		{kind: Refused429, newHook: refusing(http.StatusTooManyRequests)},
		{kind: CommittedReset, canHappen: isWrite, newHook: losingAnswer(0)},
		{kind: Refused500, newHook: refusing(http.StatusInternalServerError)},
		{kind: Conflict, canHappen: isOfExistingObject, newHook: newConflict},
		{kind: Refused503, newHook: refusing(http.StatusServiceUnavailable)},
		{kind: Committed500, canHappen: isWrite, newHook: losingAnswer(http.StatusInternalServerError)},
		{kind: Refused504, newHook: refusing(http.StatusGatewayTimeout)},
		{kind: Committed504, canHappen: isWrite, newHook: losingAnswer(http.StatusGatewayTimeout)},
		{kind: Reset, newHook: newReset},
		{kind: Refused403, isOptIn: true, newHook: refusing(http.StatusForbidden)},
	}
}

func (singleRequest) Describe() Description {
	d := Description{
		Group: "request", IsDefault: true, WhyNotPlanned: "the program makes no request at which this can happen",
	}
	for _, k := range requestKinds() {
		if k.isOptIn {
			d.OptIn = append(d.OptIn, k.kind)
		} else {
			d.Kinds = append(d.Kinds, k.kind)
		}
	}
	return d
}

// requestKindsPerPoint is how many kinds happen at each point.
const requestKindsPerPoint = 3

// Plan plans three kinds at each point: see [rotate]. Kinds that somebody has to name happen at all points.
func (singleRequest) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	rotating, named := requestKinds(), requestKinds()
	rotating = slices.DeleteFunc(rotating, func(k requestKind) bool { return k.isOptIn || !in.has(k.kind) })
	named = slices.DeleteFunc(named, func(k requestKind) bool { return !k.isOptIn || !in.has(k.kind) })
	runs, rest := rotate(in, in.Points, rotating, requestKindsPerPoint)
	for _, p := range in.Points {
		for _, k := range named {
			if k.canHappenAt(p, in.Codes[p]) {
				runs = append(runs, Fault{Kind: k.kind, At: &p})
			}
		}
	}
	return newRotatedPlan(in, runs, rest), nil
}

// name implements pointKind.
func (k requestKind) name() Kind { return k.kind }

// canHappenAt reports whether the fault can happen at a point. code is the HTTP status of the answer in a reference.
func (k requestKind) canHappenAt(p proxy.Point, code int) bool {
	return k.canHappen == nil || k.canHappen(p, code)
}

func (singleRequest) Text(f Fault) string { return fmt.Sprintf("%s of %s", f.Kind, f.At) }

func (singleRequest) arm(a *Armed, s stepContext) (effect, error) {
	kinds := requestKinds()
	i := slices.IndexFunc(kinds, func(k requestKind) bool { return k.kind == a.fault.Kind })
	return newAtPoint(a, kinds[i].newHook(a, s))
}

// Reset is a kind of the family [singleRequest]. It breaks the connection before the server receives the request.
const Reset Kind = "reset"

// newReset returns the hook of a [Reset].
func newReset(a *Armed, _ stepContext) proxy.HookFunc {
	return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
		a.recordTriggered()
		return nil, proxy.ErrBroken
	}
}

// The kinds of the family [singleRequest] in which the server does not receive a request. The next try passes: the
// kinds whose names begin with denied- deny a write again and again.
const (
	// Refused429, Refused500, Refused503 and Refused504 answer the request with this status.
	Refused429 Kind = "refused-429"
	Refused500 Kind = "refused-500"
	Refused503 Kind = "refused-503"
	Refused504 Kind = "refused-504"
	// Refused403 answers with 403, as an authorizer does while a role is not granted yet.
	Refused403 Kind = "refused-403"
)

// refusing returns the maker of hooks that answer with a code in place of the server.
func refusing(code int) hookMaker {
	return func(a *Armed, _ stepContext) proxy.HookFunc {
		return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
			a.recordTriggered()
			return refusal(code), nil
		}
	}
}

// refusal returns the answer of a server that refuses a request with a code.
func refusal(code int) *http.Response {
	texts := map[int]struct {
		reason  metav1.StatusReason
		message string
	}{
		http.StatusForbidden:           {metav1.StatusReasonForbidden, "forbidden: no role allows the request"},
		http.StatusTooManyRequests:     {metav1.StatusReasonTooManyRequests, "too many requests, please try again later"},
		http.StatusInternalServerError: {metav1.StatusReasonInternalError, "an internal error occurred"},
		http.StatusServiceUnavailable: {
			metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request",
		},
		http.StatusGatewayTimeout: {metav1.StatusReasonTimeout, "the request timed out"},
	}
	return proxy.Answer(proxy.NewStatus(code, texts[code].reason, texts[code].message))
}

// The kinds of the family [singleRequest] in which the server carries out a request, and the program does not receive
// the answer.
const (
	// Committed500 and Committed504 answer with this status in place of the server's answer.
	Committed500 Kind = "committed-500"
	Committed504 Kind = "committed-504"
	// CommittedReset breaks the connection in place of the server's answer.
	CommittedReset Kind = "committed-reset"
)

// losingAnswer returns the maker of hooks that answer with a code in place of the server, after the server has carried
// out the request. With the code 0 the connection breaks.
func losingAnswer(code int) hookMaker {
	return func(a *Armed, _ stepContext) proxy.HookFunc {
		return func(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
			response, err := next(r)
			if err != nil {
				return nil, err
			}
			defer response.Body.Close()
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				return nil, err
			}
			a.recordTriggered()
			if code == 0 {
				return nil, proxy.ErrBroken
			}
			return refusal(code), nil
		}
	}
}

// Conflict is a kind of the family [singleRequest]. It lets somebody else change an annotation of the object directly
// before the request. The server itself refuses a write with 409 that names a resource version.
const Conflict Kind = "conflict"

// ConflictManager is the field manager of the changes of [Conflict]. The field managers of an exploration begin with
// "explorer-", as [ForeignManager] does.
const ConflictManager = "explorer-conflict"

// ChangedAnnotation is the annotation that [Conflict] changes.
const ChangedAnnotation = "explore.yare.dev/changed"

// newConflict returns a hook that changes the object of a request as somebody else would, before the server receives
// the request.
func newConflict(a *Armed, s stepContext) proxy.HookFunc {
	return func(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
		annotations := map[string]any{ChangedAnnotation: time.Now().Format(time.RFC3339Nano)}
		patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		exists, err := s.admin.Patch(r.Context(), strings.TrimSuffix(x.Path, "/"+x.Subresource), ConflictManager, patch)
		if exists && err == nil {
			a.recordTriggered()
		}
		return next(r)
	}
}

// isOfExistingObject reports whether a request writes an object that exists before the request. code is the HTTP status
// of the answer in a reference.
func isOfExistingObject(p proxy.Point, code int) bool {
	isOfObject := p.IsWrite() && p.Name != "" && p.Verb != "create"
	return isOfObject && code != http.StatusCreated && code != http.StatusNotFound
}
