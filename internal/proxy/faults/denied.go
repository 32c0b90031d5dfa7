package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
)

// The kinds of faults that deny a write again and again, so that no client hides them by repeating the request. Each
// lasts for denialTime from the point on, and concerns the writes with the verb and the object of the point. It
// passes by itself, and the program must make the write then, without a restart.
const (
	// DeniedQuota answers creations with 403, as a ResourceQuota does that is used up.
	DeniedQuota Kind = "denied-quota"
	// DeniedWebhook answers with 403, as an admission webhook of others does.
	DeniedWebhook Kind = "denied-webhook"
	// DeniedRole answers with 403, as an authorizer does while a role is missing.
	DeniedRole Kind = "denied-role"
	// DeniedConflict answers changes with 409, as for an object that others change all the time.
	DeniedConflict Kind = "denied-conflict"
	// Denied429 answers with 429, without the header by which clients wait and try again.
	Denied429 Kind = "denied-429"
	// Denied5xx answers with 500, 503 and 504 in turn.
	Denied5xx Kind = "denied-5xx"
)

const (
	// denialTime is how long a write is denied.
	denialTime = 3 * time.Second
	// deniedKindsPerPoint is how many kinds happen at each write.
	deniedKindsPerPoint = 1
)

// denial is the family of faults that deny a write again and again for a time. Denials that last until the user's next
// step belong to [invalidity].
type denial struct{ baseFamily }

// denialKind is a kind of the family.
type denialKind struct {
	kind Kind
	// canHappen reports whether the fault can happen at a write. code is the HTTP status of the answer in a reference.
	canHappen func(p proxy.Point, code int) bool
	answer    denialAnswer
}

// name implements pointKind.
func (k denialKind) name() Kind { return k.kind }

// canHappenAt implements pointKind.
func (k denialKind) canHappenAt(p proxy.Point, code int) bool {
	return p.IsWrite() && code/100 == 2 && k.canHappen(p, code)
}

// denialKinds returns the kinds in the order in which points get them.
func denialKinds() []denialKind {
	isAny := func(proxy.Point, int) bool { return true }
	isAdmitted := func(p proxy.Point, _ int) bool { return p.Verb != "deletecollection" }
	isCreation := func(p proxy.Point, code int) bool { return p.Verb == "create" || code == http.StatusCreated }
	isChange := func(p proxy.Point, code int) bool { return isOfExistingObject(p, code) && p.Verb != "delete" }
	return []denialKind{
		{DeniedQuota, isCreation, newDenialAnswer(http.StatusForbidden, metav1.StatusReasonForbidden,
			"%s %q is forbidden: exceeded quota: team, requested: count=1, used: count=10, limited: count=10")},
		{DeniedConflict, isChange, newDenialAnswer(http.StatusConflict, metav1.StatusReasonConflict,
			"operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again")},
		{DeniedWebhook, isAdmitted, newDenialAnswer(http.StatusForbidden, metav1.StatusReasonForbidden,
			"admission webhook \"policy.example.com\" denied the request: %s %q is not allowed at present")},
		{Denied5xx, isAny, func(_ proxy.Point, n int) *http.Response {
			codes := []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
			return refusal(codes[n%len(codes)])
		}},
		{DeniedRole, isAny, newDenialAnswer(http.StatusForbidden, metav1.StatusReasonForbidden,
			"%s %q is forbidden: no role allows the request")},
		{Denied429, isAny, func(proxy.Point, int) *http.Response {
			response := refusal(http.StatusTooManyRequests)
			response.Header.Del("Retry-After")
			return response
		}},
	}
}

func (denial) Describe() Description {
	d := Description{
		Group: "denied", IsDefault: true, DeniesWrites: true,
		WhyNotPlanned: "the program makes no write at which this can happen",
	}
	for _, k := range denialKinds() {
		d.Kinds = append(d.Kinds, k.kind)
	}
	return d
}

// Plan plans one kind at each write. The kinds rotate: see [rotate].
func (denial) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	kinds := slices.DeleteFunc(denialKinds(), func(k denialKind) bool { return !in.has(k.kind) })
	chosen, rest := rotate(in, in.writes(), kinds, deniedKindsPerPoint)
	return newRotatedPlan(in, chosen, rest), nil
}

func (denial) Text(f Fault) string {
	if f.At == nil {
		return fmt.Sprintf("%s for %s from the first change of %s in step %d", f.Kind, denialTime, f.Object, f.Step+1)
	}
	return fmt.Sprintf("%s for %s from %s", f.Kind, denialTime, f.At)
}

func (denial) arm(a *Armed, _ stepContext) (effect, error) {
	kinds := denialKinds()
	i := slices.IndexFunc(kinds, func(k denialKind) bool { return k.kind == a.fault.Kind })
	return newDenialEffect(a, kinds[i].answer)
}

// AtTrigger ends the denial after denialTime. The run is not at rest before.
func (denial) AtTrigger(ctx context.Context, run *Run, a *Armed) error {
	run.RecordFault(InServer, a.fault.String())
	defer a.End()
	err := run.PreventRest(func() error { return clock.SleepReal(ctx, denialTime) })
	run.RecordFault(InServer, fmt.Sprintf("the writes of %s are accepted again", a.Fault().Target()))
	return err
}
