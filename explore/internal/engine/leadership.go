package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// election describes the election of a leader among the replicas of a program.
type election struct {
	// lease is the normalized name of the Lease.
	lease string
	// duration is how long a replica that is gone keeps the lease.
	duration time.Duration
}

// electionOf returns the election of a program that made these requests. It reports whether the program
// elects a leader.
func electionOf(requests []proxy.RequestRecord) (e election, isElecting bool) {
	for _, r := range requests {
		if r.Point.Resource != proxy.Leases || r.Holder == "" {
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

// term is the time from the first write of the lease by a replica to the first one by another replica.
type term struct {
	// session is the session of the leader. It is empty for the time after a release.
	session string
	// version is the resource version of that first write, whose answer was forwarded at the time answered.
	version  string
	answered time.Time
	step     int
}

// leaseWrites returns the requests that have written the Lease, in the order of the server.
func (e *election) leaseWrites(requests []proxy.RequestRecord) []proxy.RequestRecord {
	var writes []proxy.RequestRecord
	for _, r := range requests {
		if r.Point.Resource == proxy.Leases && r.Point.Name == e.lease && r.Version != "" {
			writes = append(writes, r)
		}
	}
	slices.SortStableFunc(writes, func(a, b proxy.RequestRecord) int { return ident.Compare(a.Version, b.Version) })
	return writes
}

// terms returns the terms of the leaders, in their order.
func (e *election) terms(requests []proxy.RequestRecord) (all []term) {
	for _, w := range e.leaseWrites(requests) {
		session := w.Session
		if w.Holder == "" {
			session = ""
		}
		if n := len(all); n == 0 || all[n-1].session != session {
			all = append(all, term{session: session, version: w.Version, answered: w.Ended, step: w.Point.Step})
		}
	}
	return all
}

// leader returns the session of the replica that has taken the lease last. The session is empty if no replica has
// taken the lease, or if the lease was released.
func (e *election) leader(requests []proxy.RequestRecord) string {
	terms := e.terms(requests)
	if len(terms) == 0 {
		return ""
	}
	return terms[len(terms)-1].session
}

// hasLost reports whether a session has led, and either another session has the lease now, or the last renewal is
// so long ago that the program may have given the lease up.
func (e *election) hasLost(session string, requests []proxy.RequestRecord) bool {
	writes := e.leaseWrites(requests)
	isOwn := func(w proxy.RequestRecord) bool { return w.Session == session && w.Holder != "" }
	if !slices.ContainsFunc(writes, isOwn) {
		return false
	}
	last := writes[len(writes)-1]
	return !isOwn(last) || time.Since(last.Began) > e.duration/2
}

// lateWrites returns the writes that the server carried out for a former leader after another replica had
// taken the lease.
func (e *election) lateWrites(requests []proxy.RequestRecord) (late []finding.Difference, step int) {
	terms := e.terms(requests)
	for _, r := range requests {
		if !isCarriedOut(r) {
			continue
		}
		present := -1 // the term in which the server carried out r
		for i, t := range terms {
			if isAfterBeginning(r, t) {
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
			Object: faults.Object{Resource: r.Point.Resource, Name: r.Point.Name}.String(),
			Reason: fmt.Sprintf("The server carried out a %s of a former leader after another replica had taken the lease.",
				r.Point.Verb),
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

// isCarriedOut reports whether a request is a write carried out by the server, of an object that a leader alone
// writes.
func isCarriedOut(r proxy.RequestRecord) bool {
	if r.Point.Resource == "" || proxy.IsBackground(r.Point.Resource) {
		return false
	}
	switch r.Point.Verb {
	case "delete", "deletecollection": // the answer may have no version
		return r.Version != "" || !r.Sent.IsZero() && r.Code >= 200 && r.Code <= 299
	}
	return r.Point.IsWrite() && r.Version != ""
}

// isAfterBeginning reports whether the server has carried out a request after a term has begun.
func isAfterBeginning(r proxy.RequestRecord, t term) bool {
	return ident.IsNewer(r.Version, t.version) || !t.answered.IsZero() && r.Sent.After(t.answered)
}
