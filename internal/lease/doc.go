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
// the time that a write may take. As a [net.Conn], it checks again when bytes leave the process, because a process can be
// stopped for any time between the two checks. A process that is stopped between the second check and the system call can
// still send bytes too late. Only two instructions lie between these two.
package lease
