package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/explore/faults"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/ident"
)

// leaderGroup is the name of all faults that take the lease from a leader.
const leaderGroup schedule.Kind = "leader"

// leaderKinds returns the ways in which a leader loses its lease.
func leaderKinds() []schedule.Kind {
	return []schedule.Kind{schedule.LeaderLost, schedule.LeaderCut, schedule.LeaderKilled, schedule.LeaderHung}
}

// leases is the resource of the objects by which replicas elect their leader.
const leases = "leases.coordination.k8s.io"

// election describes the election of a leader among the replicas of a program.
type election struct {
	// lease is the normalized name of the Lease.
	lease string
	// duration is how long a replica that is gone keeps the lease.
	duration time.Duration
}

// electionOf returns the election of a program that made these requests. It reports whether the program
// elects a leader.
func electionOf(requests []faults.Request) (e election, isElecting bool) {
	for _, r := range requests {
		if r.Point.Resource != leases || r.Holder == "" {
			continue
		}
		if !isElecting {
			e.lease, isElecting = r.Point.Name, true
		}
		if r.Point.Name == e.lease {
			e.duration = max(e.duration, r.LeaseDuration)
		}
	}
	return e, isElecting
}

// takeOverTime returns how long another replica may take to get the lease of a replica that is gone. Client-go
// polls, and a machine may be slow.
func (e *election) takeOverTime() time.Duration { return 3*e.duration + 10*time.Second }

// term is the time from a claim of the lease to the next claim of another replica.
type term struct {
	// session is the life of the leader. It is empty for the time after a release.
	session string
	// version is the resource version of the claim, whose answer was forwarded at the time answered.
	version  string
	answered time.Time
	step     int
}

// claims returns the requests that have written the Lease, in the order of the server.
func (e *election) claims(requests []faults.Request) []faults.Request {
	var claims []faults.Request
	for _, r := range requests {
		if r.Point.Resource == leases && r.Point.Name == e.lease && r.Version != "" {
			claims = append(claims, r)
		}
	}
	slices.SortStableFunc(claims, func(a, b faults.Request) int {
		switch {
		case ident.IsNewer(a.Version, b.Version):
			return 1
		case ident.IsNewer(b.Version, a.Version):
			return -1
		}
		return 0
	})
	return claims
}

// terms returns the terms of the leaders, in their order.
func (e *election) terms(requests []faults.Request) (all []term) {
	for _, c := range e.claims(requests) {
		session := c.Session
		if c.Holder == "" {
			session = ""
		}
		if n := len(all); n == 0 || all[n-1].session != session {
			all = append(all, term{session: session, version: c.Version, answered: c.Ended, step: c.Point.Step})
		}
	}
	return all
}

// leader returns the session of the replica that has taken the lease last. The session is empty if no replica has
// taken the lease, or if the lease was released.
func (e *election) leader(requests []faults.Request) string {
	terms := e.terms(requests)
	if len(terms) == 0 {
		return ""
	}
	return terms[len(terms)-1].session
}

// hasLost reports whether a session has led, and either another session has the lease now, or the last renewal is
// so long ago that the program may have given the lease up.
func (e *election) hasLost(session string, requests []faults.Request) bool {
	claims := e.claims(requests)
	own := func(c faults.Request) bool { return c.Session == session && c.Holder != "" }
	if !slices.ContainsFunc(claims, own) {
		return false
	}
	last := claims[len(claims)-1]
	return !own(last) || time.Since(last.Began) > e.duration/2
}

// lateWrites returns the writes that the server carried out for a former leader after another replica had
// taken the lease.
func (e *election) lateWrites(requests []faults.Request) (late []finding.Difference, step int) {
	terms := e.terms(requests)
	for _, r := range requests {
		if !isCarriedOut(r) {
			continue
		}
		present := -1 // the term in which the server carried out r
		for i, t := range terms {
			if isAfterClaim(r, t) {
				present = i
			}
		}
		if present < 0 || terms[present].session == "" || terms[present].session == r.Session {
			continue
		}
		if !slices.ContainsFunc(terms[:present], func(t term) bool { return t.session == r.Session }) {
			continue // it has never led: all replicas may write such an object
		}
		d := finding.Difference{
			Object: schedule.Object{Resource: r.Point.Resource, Name: r.Point.Name}.String(),
			Reason: fmt.Sprintf("The server carried out a %s of a former leader after another replica had taken the lease.", r.Point.Verb),
		}
		if len(late) == 0 {
			step = r.Point.Step
		}
		if !slices.Contains(late, d) {
			late = append(late, d)
		}
	}
	return late, step
}

// isCarriedOut reports whether a request is a write that the server has carried out, of an object that a
// leader alone writes.
func isCarriedOut(r faults.Request) bool {
	switch r.Point.Resource {
	case "", leases, "events", "events.events.k8s.io":
		return false
	}
	switch r.Point.Verb {
	case "delete", "deletecollection": // the answer may have no version
		return r.Version != "" || !r.Sent.IsZero() && r.Code >= 200 && r.Code <= 299
	}
	return r.Point.IsWrite() && r.Version != ""
}

// isAfterClaim reports whether the server has carried out a write after a claim of the lease.
func isAfterClaim(r faults.Request, t term) bool {
	return ident.IsNewer(r.Version, t.version) || !t.answered.IsZero() && r.Sent.After(t.answered)
}

// judgeTerms looks for writes of former leaders in a run whose faults take the lease from a leader, and
// reports whether there are any. In other runs the exploration itself releases leases.
func (e *explorer) judgeTerms(j job, out *outcome) bool {
	if e.election == nil || !needsStandby(j.schedule) {
		return false
	}
	late, step := e.election.lateWrites(out.requests)
	if len(late) == 0 {
		return false
	}
	out.problem, out.problemStep, out.differences = finding.TwoLeaders, step, late
	return true
}

// leaderKindsPerPoint is the number of ways in which a leader loses its lease at each write. The ways rotate.
const leaderKindsPerPoint = 2

// planLeader returns the faults that take the lease from a leader: at each write of the references, or,
// within a budget, at one write for each kind, because such a run lasts longer than the lease.
func (e *explorer) planLeader(points []schedule.Point, has func(schedule.Kind) bool) (all []schedule.Fault) {
	kinds := slices.DeleteFunc(leaderKinds(), func(k schedule.Kind) bool { return !has(k) })
	writes := slices.DeleteFunc(slices.Clone(points), func(p schedule.Point) bool { return !p.IsWrite() })
	switch {
	case len(kinds) == 0:
		return nil
	case e.election == nil:
		e.coverage.NotApplicable[leaderGroup] = "the program elects no leader; start it with --leader-elect if it has that flag"
		return nil
	case len(writes) == 0:
		e.coverage.NotApplicable[leaderGroup] = "the program writes nothing"
		return nil
	}
	rotation := e.random.IntN(len(kinds))
	if e.options.Budget > 0 {
		for _, k := range kinds {
			all = append(all, schedule.Fault{Kind: k, At: &writes[e.random.IntN(len(writes))]})
		}
		return all
	}
	for i := range writes {
		for range min(leaderKindsPerPoint, len(kinds)) {
			all = append(all, schedule.Fault{Kind: kinds[rotation%len(kinds)], At: &writes[i]})
			rotation++
		}
	}
	return all
}
