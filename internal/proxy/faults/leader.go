package faults

import (
	"context"
	"fmt"
	"net/http"

	"github.com/yare-go/yare/internal/proxy"
)

// The kinds of faults that take the lease from the requesting replica, while another replica stands by. They last until
// the other replica has the lease.
const (
	// LeaderLost answers the requests of the leader for its Lease with 503. LeaderHung holds them. All
	// other requests of the leader pass, so that nothing but the leader itself can end its term.
	LeaderLost Kind = "leader-lost"
	LeaderHung Kind = "leader-hung"
	// LeaderCut holds all requests and streams of the leader, the request of the fault among them, as a
	// partitioned network does. Requests that the leader has not given up by then pass in the end.
	LeaderCut Kind = "leader-cut"
	// LeaderKilled cuts the leader off at the request, and kills it. The leader starts again as a
	// standby.
	LeaderKilled Kind = "leader-killed"
)

// leader is the family of faults of leaders.
type leader struct{ baseFamily }

func (leader) Describe() Description {
	return Description{
		Group: "leader", Kinds: []Kind{LeaderLost, LeaderCut, LeaderKilled, LeaderHung}, IsDefault: true, NeedsStandby: true,
	}
}

// leaderKindsPerPoint is the number of ways in which a leader loses its lease at each write. The ways rotate.
const leaderKindsPerPoint = 2

// Plan plans two ways at each write of the references. Within a budget it plans each way once, because such a run lasts
// longer than the lease.
func (l leader) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	d := l.Describe()
	kinds, writes := in.planned(d.Kinds...), in.writes()
	switch {
	case len(kinds) == 0:
		return Plan{}, nil
	case !in.IsElecting:
		return newNotApplicable("the program elects no leader; start it with --leader-elect if it has that flag",
			Kind(d.Group)), nil
	case len(writes) == 0:
		return newNotApplicable("the program writes nothing", Kind(d.Group)), nil
	}
	var all []Fault
	rotation := in.Random.IntN(len(kinds))
	perPoint := leaderKindsPerPoint
	if in.IsExhaustive {
		perPoint = len(kinds)
	}
	if in.IsLimited && !in.IsExhaustive {
		for _, k := range kinds {
			all = append(all, Fault{Kind: k, At: &writes[in.Random.IntN(len(writes))]})
		}
		return newPlan(all), nil
	}
	for i := range writes {
		for range min(perPoint, len(kinds)) {
			all = append(all, Fault{Kind: kinds[rotation%len(kinds)], At: &writes[i]})
			rotation++
		}
	}
	return newPlan(all), nil
}

func (leader) arm(a *Armed, s stepContext) (effect, error) {
	if a.fault.Kind == LeaderKilled {
		return crash{}.arm(a, s)
	}
	if a.fault.At == nil {
		return nil, fmt.Errorf("the fault %s has no point", a.fault.Kind)
	}
	return isolation{armed: a}, nil
}

// AtTrigger waits until another replica leads.
func (leader) AtTrigger(_ context.Context, run *Run, a *Armed) error {
	run.RecordFault(InProgram, a.fault.String())
	return run.HandOver(a, a.fault.Kind == LeaderKilled)
}

// isolation is the effect of the faults that keep requests of a leader from the server, and events from the leader.
type isolation struct {
	armed *Armed
}

// concerns reports whether the isolation keeps back an exchange. It concerns the session of the leader only.
func (i isolation) concerns(x *proxy.Exchange) bool {
	return i.armed.Session() == x.Session && (i.armed.fault.Kind == LeaderCut || x.Resource == proxy.Leases)
}

// RoundTrip begins the isolation at the request of the fault. It refuses or holds what the isolation concerns.
func (i isolation) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	if i.armed.takeExchange(x) {
		i.armed.recordTriggered()
	}
	switch {
	case !i.concerns(x):
		return next(r)
	case i.armed.fault.Kind == LeaderLost:
		return refusal(http.StatusServiceUnavailable), nil
	}
	select {
	case <-i.armed.ended:
		return next(r)
	case <-r.Context().Done():
		return nil, proxy.ErrBroken
	}
}

// Decide holds the watches that the isolation concerns.
func (i isolation) Decide(x *proxy.Exchange, _ proxy.Event) proxy.Decision {
	if !i.concerns(x) {
		return proxy.Decision{}
	}
	return proxy.Decision{Until: i.armed.ended}
}
