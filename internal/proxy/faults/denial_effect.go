package faults

import (
	"fmt"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
)

// denialAnswer returns the answer to the n-th write, counted from 0.
type denialAnswer func(p proxy.Point, n int) *http.Response

// newDenialAnswer returns an answer with a status. format is the message, with verbs for the resource and the name of
// the object.
func newDenialAnswer(code int, reason metav1.StatusReason, format string) denialAnswer {
	return func(p proxy.Point, _ int) *http.Response {
		return proxy.Answer(proxy.NewStatus(code, reason, fmt.Sprintf(format, p.Resource, p.Name)))
	}
}

// denialEffect is the effect of a denial.
type denialEffect struct {
	baseEffect
	armed  *Armed
	answer denialAnswer
	// count counts the writes that were denied.
	count atomic.Int64
}

// newDenialEffect returns the effect of a denial. The denied writes get the answer. Error: the fault has neither a
// point nor an object.
func newDenialEffect(a *Armed, answer denialAnswer) (effect, error) {
	f := a.Fault()
	if f.At == nil && f.Object == nil {
		return nil, fmt.Errorf("the fault %s has neither a point nor an object", f.Kind)
	}
	return &denialEffect{armed: a, answer: answer}, nil
}

// RoundTrip denies the write of the point, and from then on all writes with its verb and object.
func (e *denialEffect) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	point, f := x.Recorded().Point, e.armed.Fault()
	switch {
	case !x.IsAboutObjects() || !f.MatchesWrite(point):
		return next(r)
	case f.At == nil || e.armed.IsTriggered():
		x.Record(func(r *proxy.RequestRecord) { r.Fault = string(f.Kind) })
	case !e.armed.takeExchange(x):
		return next(r)
	}
	e.armed.recordTriggered()
	return e.answer(point, int(e.count.Add(1)-1)), nil
}

// isSameWrite reports whether two requests have the same verb and concern the same object.
func isSameWrite(a, b proxy.Point) bool {
	return a.Verb == b.Verb && a.Resource == b.Resource && a.Subresource == b.Subresource && a.Name == b.Name
}
