// Package schedule has the types that describe a run of an exploration: the steps of the user of an operator, and
// the faults. A [Schedule] is JSON in the file of a finding, so that the run can be replayed:
//
//	{
//	  "seed": 1,
//	  "steps": [
//	    {"name": "apply the samples", "apply": [{"apiVersion": "example.com/v1", "kind": "WebApp", ...}]},
//	    {"name": "delete the samples", "delete": [{"resource": "webapps.example.com", "name": "web"}]}
//	  ],
//	  "faults": [{
//	    "kind": "crash", "restart": "at-rest",
//	    "at": {"step": 0, "verb": "patch", "resource": "deployments.apps", "name": "web", "changeHash": "5f0c", "occurrence": 1}
//	  }]
//	}
//
// The fault of this run happens at a [Point]: the first such request of the program in step 0. The program crashes
// before the server receives the request, and starts again at rest.
package schedule

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Schedule is everything that happens in a run. A replay arms the same triggers again. A replay is
// not exact to the bit, because the program and the control plane have threads of their own.
type Schedule struct {
	// Seed is the seed of the exploration that planned the run.
	Seed uint64 `json:"seed,omitempty"`
	// Steps are the steps of the user. A step begins when the program has come to rest after the step
	// before.
	Steps  []Step  `json:"steps"`
	Faults []Fault `json:"faults,omitempty"`
}

// Step is one thing that the user does: the user applies objects, deletes objects, or both.
type Step struct {
	Name string `json:"name"`
	// Apply are the objects that the user applies, by server-side apply.
	Apply []json.RawMessage `json:"apply,omitempty"`
	// Delete are the objects that the user deletes. The step does not wait until they are gone.
	Delete []Object `json:"delete,omitempty"`
}

// Object names an object of the run's namespace.
type Object struct {
	// Resource is the plural name and the group, such as deployments.apps.
	Resource string `json:"resource"`
	// Name is a normalized name: see [Point].
	Name string `json:"name"`
}

// String returns the object as resource/name.
func (o Object) String() string { return o.Resource + "/" + o.Name }

// Point names one request of a program, so that the same request is recognized in another run.
type Point struct {
	// Step is the index of the step of the user during which the program made the request.
	Step        int    `json:"step"`
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Name is the normalized name of the object: random parts of generated names are replaced by
	// an asterisk. It is empty for lists and creates without a name.
	Name string `json:"name,omitempty"`
	// ChangeHash is a hash of the body without what differs between runs: uids, versions and times.
	// It is empty for reads.
	ChangeHash string `json:"changeHash,omitempty"`
	// Occurrence counts the requests of the step that are equal otherwise, from 1.
	Occurrence int `json:"occurrence"`
}

// IsWrite reports whether the request changes objects.
func (p Point) IsWrite() bool {
	switch p.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// String returns the point in a line, such as: patch deployments.apps/web (2nd in step 1).
func (p Point) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.Verb, p.Resource)
	if p.Subresource != "" {
		b.WriteString("/" + p.Subresource)
	}
	if p.Name != "" {
		b.WriteString(" " + p.Name)
	}
	fmt.Fprintf(&b, " (step %d, occurrence %d)", p.Step+1, p.Occurrence)
	return b.String()
}

// Kind is the kind of a fault. Kubernetes allows each of them, unless its comment states otherwise.
type Kind string

// The kinds of faults.
const (
	// Crash cuts the program off at the point, kills it, and starts it again: see [Fault.Restart].
	// The server does not receive the request. A crash between the request and its answer is the
	// same for the server as a crash at the next point.
	Crash Kind = "crash"

	// Refused429, Refused500, Refused503 and Refused504 answer the request with this status, and the
	// server does not receive it.
	Refused429 Kind = "refused-429"
	Refused500 Kind = "refused-500"
	Refused503 Kind = "refused-503"
	Refused504 Kind = "refused-504"
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

	// WatchLag holds the events of a stream back for the rest of the step, and delivers them then.
	WatchLag Kind = "watch-lag"
	// WatchCut breaks the connection of a stream's watch after some events.
	WatchCut Kind = "watch-cut"
	// WatchExpired answers the next watch of a stream with 410.
	WatchExpired Kind = "watch-expired"
	// WatchMissed holds a stream for the step, and answers its next watch with 410, so that the
	// program never sees the states in between.
	WatchMissed Kind = "watch-missed"

	// WatchTwice delivers each event of a stream twice for the rest of the step. No API server does so.
	WatchTwice Kind = "watch-twice"

	// Idle is no fault, and must change nothing: when the step has come to rest, the time of parts
	// moves forward, and any other program is restarted.
	Idle Kind = "idle"

	// Stale answers reads with resourceVersion=0 from the past, after a restart of the program.
	Stale Kind = "stale"

	// ForeignEdit, ForeignDelete, ForeignRecreate, StripOwners, StripFinalizers and StripLabels are
	// what other users and controllers do to an object that the program has made, when the step has come
	// to rest.
	ForeignEdit     Kind = "foreign-edit"
	ForeignDelete   Kind = "foreign-delete"
	ForeignRecreate Kind = "foreign-recreate"
	StripOwners     Kind = "strip-owners"
	StripFinalizers Kind = "strip-finalizers"
	StripLabels     Kind = "strip-labels"

	// LeaderLost, LeaderHung, LeaderCut and LeaderKilled take the lease from the replica that makes the
	// request, while another replica stands by. They last until the other replica has the lease.
	//
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

	// Unreadable stores an object of the first sample's kind before the step, whose fields have values of
	// other types. A schema of former times has allowed them.
	Unreadable Kind = "unreadable"
	// Restored sets the server back to a backup from before the step, when the step has come to rest.
	// The user makes the step again.
	Restored Kind = "restored"

	// ServerKilled and EtcdKilled kill the API server, or etcd, and start it again after a moment.
	// EtcdPaused stops etcd for some seconds. Such a fault happens when the program makes the request,
	// or, without a point, when the step has come to rest.
	ServerKilled Kind = "server-killed"
	EtcdKilled   Kind = "etcd-killed"
	EtcdPaused   Kind = "etcd-paused"
)

// IsOfLeader reports whether a fault of this kind takes the lease from a leader.
func (k Kind) IsOfLeader() bool {
	switch k {
	case LeaderLost, LeaderHung, LeaderCut, LeaderKilled:
		return true
	}
	return false
}

// IsOfPlane reports whether a fault of this kind stops a component of the control plane.
func (k Kind) IsOfPlane() bool {
	switch k {
	case ServerKilled, EtcdKilled, EtcdPaused:
		return true
	}
	return false
}

// ConcernsAll reports whether a fault of this kind concerns all who use the control plane, so that
// its run has the control plane for itself.
func (k Kind) ConcernsAll() bool { return k.IsOfPlane() || k == Unreadable || k == Restored }

// Fault is one fault of a run.
type Fault struct {
	Kind Kind `json:"kind"`
	// At is the request at which the fault happens: a crash, a refusal, a lost answer, a reset,
	// a conflict, the loss of a lease, or the end of a component.
	At *Point `json:"at,omitempty"`
	// Restart is when a program that has crashed starts again. Default: at once.
	Restart Restart `json:"restart,omitempty"`
	// Step is the step of a fault that has no point.
	Step int `json:"step,omitempty"`
	// Stream is the resource of a watch fault, such as deployments.apps.
	Stream string `json:"stream,omitempty"`
	// Events is how many events of the step the watch delivers before the fault.
	Events int `json:"events,omitempty"`
	// Object is the object of a fault by other users.
	Object *Object `json:"object,omitempty"`
	// Edit is the merge patch of a [ForeignEdit].
	Edit json.RawMessage `json:"edit,omitempty"`
}

// Restart is when a program that has crashed is started again.
type Restart string

// The times of a restart.
const (
	RestartNow      Restart = ""
	RestartAtRest   Restart = "rest"      // when the control plane has come to rest
	RestartNextStep Restart = "next-step" // when the user has done the next step
)

// String returns the fault in a line.
func (f Fault) String() string {
	switch {
	case f.Kind == Crash:
		where := fmt.Sprintf("after the last write of step %d", f.Step+1)
		if f.At != nil {
			where = "at " + f.At.String()
		}
		when := map[Restart]string{RestartNow: "at once", RestartAtRest: "at rest", RestartNextStep: "after the next step"}[f.Restart]
		return fmt.Sprintf("crash %s, restart %s", where, when)
	case f.At != nil && (f.Kind.IsOfLeader() || f.Kind.IsOfPlane()):
		return fmt.Sprintf("%s at %s", f.Kind, f.At)
	case f.At != nil:
		return fmt.Sprintf("%s of %s", f.Kind, f.At)
	case f.Object != nil:
		return fmt.Sprintf("%s of %s after step %d", f.Kind, f.Object, f.Step+1)
	case f.Stream != "":
		return fmt.Sprintf("%s of %s in step %d", f.Kind, f.Stream, f.Step+1)
	case f.Kind == Unreadable:
		return fmt.Sprintf("%s object before step %d", f.Kind, f.Step+1)
	default:
		return fmt.Sprintf("%s after step %d", f.Kind, f.Step+1)
	}
}
