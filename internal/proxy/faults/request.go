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

// The kinds of faults of one request.
const (
	// Refused429, Refused500, Refused503 and Refused504 answer the request with this status, and the
	// server does not receive it.
	Refused429 Kind = "refused-429"
	Refused500 Kind = "refused-500"
	Refused503 Kind = "refused-503"
	Refused504 Kind = "refused-504"
	// Refused403 answers with 403, as an authorizer does while a role is not granted yet.
	Refused403 Kind = "refused-403"
	// Committed500, Committed504 and CommittedReset let the server carry out the request, and lose the
	// answer: the program receives the status, or its connection breaks.
	Committed500   Kind = "committed-500"
	Committed504   Kind = "committed-504"
	CommittedReset Kind = "committed-reset"
	// Reset breaks the connection before the server receives the request.
	Reset Kind = "reset"
	// Conflict lets somebody else change the object directly before the request: an annotation is
	// written. A write that names a resource version is refused with 409 by the server itself.
	Conflict Kind = "conflict"
)

// request is the family of faults of one request.
type request struct{ baseFamily }

// requestKind is a kind of the family.
type requestKind struct {
	kind Kind
	// isOptIn is true for a kind that happens only if somebody names it.
	isOptIn bool
	// canHappen reports whether the fault can happen at a point. code is the HTTP status of the answer in a reference.
	// canHappen is nil if the fault can happen at all points.
	canHappen func(p proxy.Point, code int) bool
	// handle handles the request of a fault.
	handle func(a *Armed, s stepContext) proxy.HookFunc
}

// requestKinds returns the kinds in the order in which points get them.
func requestKinds() []requestKind {
	isWrite := func(p proxy.Point, _ int) bool { return p.IsWrite() }
	return []requestKind{
		{kind: Refused429, handle: refuse(http.StatusTooManyRequests)},
		{kind: CommittedReset, canHappen: isWrite, handle: loseAnswer(0)},
		{kind: Refused500, handle: refuse(http.StatusInternalServerError)},
		{kind: Conflict, canHappen: isOfExistingObject, handle: changeBefore},
		{kind: Refused503, handle: refuse(http.StatusServiceUnavailable)},
		{kind: Committed500, canHappen: isWrite, handle: loseAnswer(http.StatusInternalServerError)},
		{kind: Refused504, handle: refuse(http.StatusGatewayTimeout)},
		{kind: Committed504, canHappen: isWrite, handle: loseAnswer(http.StatusGatewayTimeout)},
		{kind: Reset, handle: reset},
		{kind: Refused403, isOptIn: true, handle: refuse(http.StatusForbidden)},
	}
}

func (request) Describe() Description {
	d := Description{Group: "request", IsDefault: true, Opportunity: "the program makes no request at which this can happen"}
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

// Plan plans three kinds at each point. The kinds rotate, and the seed chooses the first one. A kind that cannot happen
// at a point is passed over. Example: of kinds a to d that begin with c, the first point gets c, d and a, and the second
// one b, c and d. A kind that the rotation leaves out happens at one point. The other pairs of a kind and a point are
// planned for the rest of a budget, or, in an exhaustive exploration, at once. Kinds that somebody has to name happen at
// all points.
func (request) Plan(_ context.Context, in *PlanInput) (Plan, error) {
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

// pointKind is a kind of fault that happens at points.
type pointKind interface {
	name() Kind
	// canHappenAt reports whether the fault can happen at a point. code is the HTTP status of the answer in a reference.
	canHappenAt(p proxy.Point, code int) bool
}

// rotate distributes kinds over points: each point gets some of the kinds that can happen at the point, in turn. A kind
// that no point has got gets one. rest are the other faults that can happen, in random order.
func rotate[K pointKind](in *PlanInput, points []proxy.Point, kinds []K, perPoint int) (chosen, rest []Fault) {
	if len(kinds) == 0 {
		return nil, nil
	}
	rotation := in.Random.IntN(len(kinds))
	isChosen := make(map[Kind]bool)
	for i := range points {
		var possible []K // in the order of the rotation
		for j := range kinds {
			if k := kinds[(rotation+j)%len(kinds)]; k.canHappenAt(points[i], in.Codes[points[i]]) {
				possible = append(possible, k)
			}
		}
		for j, k := range possible {
			f := Fault{Kind: k.name(), At: &points[i]}
			if j >= perPoint {
				rest = append(rest, f)
				continue
			}
			chosen = append(chosen, f)
			isChosen[f.Kind] = true
			rotation = 1 + slices.IndexFunc(kinds, func(other K) bool { return other.name() == f.Kind })
		}
	}
	in.Random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	rest = slices.DeleteFunc(rest, func(f Fault) bool {
		isFirst := !isChosen[f.Kind]
		if isFirst {
			chosen = append(chosen, f)
			isChosen[f.Kind] = true
		}
		return isFirst
	})
	return chosen, rest
}

// newRotatedPlan returns a plan with one run for each chosen fault. The rest follows at once in an exhaustive exploration.
func newRotatedPlan(in *PlanInput, chosen, rest []Fault) Plan {
	if in.IsExhaustive {
		return newPlan(append(chosen, rest...))
	}
	p := newPlan(chosen)
	p.MoreRuns = slices.Collect(slices.Chunk(rest, 1))
	return p
}

// name implements pointKind.
func (k requestKind) name() Kind { return k.kind }

// canHappenAt reports whether the fault can happen at a point. code is the HTTP status of the answer in a reference.
func (k requestKind) canHappenAt(p proxy.Point, code int) bool {
	return k.canHappen == nil || k.canHappen(p, code)
}

// isOfExistingObject reports whether a request writes an object that exists before the request.
func isOfExistingObject(p proxy.Point, code int) bool {
	isOfObject := p.IsWrite() && p.Name != "" && p.Verb != "create"
	return isOfObject && code != http.StatusCreated && code != http.StatusNotFound
}

func (request) Text(f Fault) string { return fmt.Sprintf("%s of %s", f.Kind, f.At) }

func (request) arm(a *Armed, s stepContext) (effect, error) {
	kinds := requestKinds()
	i := slices.IndexFunc(kinds, func(k requestKind) bool { return k.kind == a.fault.Kind })
	return newAtPoint(a, kinds[i].handle(a, s))
}

// refuse answers a request in place of the server.
func refuse(code int) func(*Armed, stepContext) proxy.HookFunc {
	return func(a *Armed, _ stepContext) proxy.HookFunc {
		return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
			a.recordTriggered()
			return refusal(code), nil
		}
	}
}

// loseAnswer replaces the answer of the server. With the code 0 the connection breaks.
func loseAnswer(code int) func(*Armed, stepContext) proxy.HookFunc {
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

// reset breaks the connection before the server receives the request.
func reset(a *Armed, _ stepContext) proxy.HookFunc {
	return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
		a.recordTriggered()
		return nil, proxy.ErrBroken
	}
}

// conflictManager is the field manager of the changes of [Conflict].
const conflictManager = "yare-explore"

// ChangedAnnotation is the annotation that [Conflict] changes.
const ChangedAnnotation = "explore.yare.dev/changed"

// changeBefore changes the object of a request as somebody else would, before the server receives the request.
func changeBefore(a *Armed, s stepContext) proxy.HookFunc {
	return func(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
		annotations := map[string]any{ChangedAnnotation: time.Now().Format(time.RFC3339Nano)}
		patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		exists, err := s.admin.Patch(r.Context(), strings.TrimSuffix(x.Path, "/"+x.Subresource), conflictManager, patch)
		if exists && err == nil {
			a.recordTriggered()
		}
		return next(r)
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
		http.StatusServiceUnavailable:  {metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"},
		http.StatusGatewayTimeout:      {metav1.StatusReasonTimeout, "the request timed out"},
	}
	return proxy.Answer(proxy.NewStatus(code, texts[code].reason, texts[code].message))
}
