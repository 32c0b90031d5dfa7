// Package lease elects one leader among the replicas of a program, and keeps the requests of the
// leader within its term.
//
// The record is a Lease of coordination.k8s.io/v1 as the electors of client-go write it. Therefore
// replicas with either elector can share a Lease.
//
// A term lasts from the election of a process to the end of that process, or to the orderly release of the lease.
// It is valid until the deadline: [Timing.Deadline] after its last successful renewal was sent. The other
// replicas take the lease [Timing.Duration] after they observed that renewal. They observe a renewal later than
// it is sent. The difference between the two durations, 10 s by default, is the tolerance for the network and the
// rates of the clocks.
//
// [Elector] acquires, renews and releases the lease. [Fence] refuses requests after the deadline. It does so in two
// places. As a [wire.Handler] directly above the transport, it checks each attempt to send a request, and limits
// the time that a write may take. As a [net.Conn], it checks again when bytes leave the process, because a process can
// be stopped for any time between the two checks. A process that is stopped between the second check and the system
// call can still send bytes too late. Only two instructions lie between these two.
package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// Spec is the spec of a [Lease]. The type of k8s.io/api would be linked for nothing else, with all
// types of its group.
type Spec struct {
	HolderIdentity       *string           `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds *int32            `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          *metav1.MicroTime `json:"acquireTime,omitempty"`
	RenewTime            *metav1.MicroTime `json:"renewTime,omitempty"`
	LeaseTransitions     *int32            `json:"leaseTransitions,omitempty"`
	// Strategy and PreferredHolder belong to coordinated leader election (KEP-4355). They are kept.
	Strategy        *string `json:"strategy,omitempty"`
	PreferredHolder *string `json:"preferredHolder,omitempty"`
}

// Lease is a Lease of coordination.k8s.io/v1. It has no methods, and is read and written without
// [kube.API], because both would make each program with a leader election larger.
type Lease struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       Spec              `json:"spec"`
}

// labelKinds is the label of a Lease with the hash of the kinds that its program reconciles.
const labelKinds = "leases.yare.dev/kinds"

// Resource returns the resource of a [Lease].
func Resource() wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		Plural:           "leases",
	}
}

// Holder returns the identity of the replica that holds l, or an empty text.
func Holder(l *Lease) string { return valueOf(l.Spec.HolderIdentity) }

// HasRenewedHolder reports whether l has a holder that has renewed it since a time, by the clock of the holder.
func HasRenewedHolder(l *Lease, since time.Time) bool {
	return Holder(l) != "" && valueOf(l.Spec.RenewTime).After(since)
}

// record is the content of a Lease that electors write. It is comparable. Times are in microseconds,
// as in the Lease.
type record struct {
	holder            string
	durationSeconds   int32
	acquired, renewed int64
	transitions       int32
}

// recordOf returns the record in l. A nil Lease has the zero record.
func recordOf(l *Lease) record {
	if l == nil {
		return record{}
	}
	s := l.Spec
	return record{
		holder: valueOf(s.HolderIdentity), durationSeconds: valueOf(s.LeaseDurationSeconds),
		acquired: valueOf(s.AcquireTime).UnixMicro(), renewed: valueOf(s.RenewTime).UnixMicro(),
		transitions: valueOf(s.LeaseTransitions),
	}
}

// isReleased reports whether r is the record of an orderly release, as the electors of client-go write it too: no
// holder, and a duration of one second.
func (r record) isReleased() bool { return r.holder == "" && r.durationSeconds == 1 }

// mayHaveLeader reports whether a process may act as the leader because of r: r has a holder, or r has a duration and
// is no orderly release. In the second case somebody has removed the holder by hand, and the former holder may not know
// that yet.
func (r record) mayHaveLeader() bool { return r.holder != "" || r.durationSeconds > 1 }

// longestCounted is the longest duration of a record that counts, twice the longest one of an [Elector]. A record with
// a longer duration is a mistake, such as the edit of a user. Without this limit, no replica would lead for 68 years
// after it.
const longestCounted = 2 * longestDuration

// duration returns how long r is valid after a renewal, longestCounted at most. usual stands for a duration that r
// lacks.
func (r record) duration(usual time.Duration) time.Duration {
	if r.durationSeconds <= 0 {
		return usual
	}
	return min(time.Duration(r.durationSeconds)*time.Second, longestCounted)
}

// withRecord returns a copy of l with the record r.
func withRecord(l *Lease, r record) *Lease {
	changed := *l
	changed.Spec.HolderIdentity, changed.Spec.LeaseDurationSeconds = &r.holder, &r.durationSeconds
	changed.Spec.AcquireTime, changed.Spec.RenewTime = MicroTime(time.UnixMicro(r.acquired)),
		MicroTime(time.UnixMicro(r.renewed))
	changed.Spec.LeaseTransitions = &r.transitions
	return &changed
}

// MicroTime returns t as a Lease has it.
func MicroTime(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }

// valueOf returns the value that p points to, or the zero value.
func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}
