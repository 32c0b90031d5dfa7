package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/yare-go/yare/internal/proxy"
)

// singleRequest is the family of faults of one request: the program sends the request again, and the second try passes. Its
// kinds stand in refused.go, committed.go, reset.go and conflict.go. See [denial] for writes that are denied again and again.
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
	d := Description{Group: "request", IsDefault: true, WhyNotPlanned: "the program makes no request at which this can happen"}
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
