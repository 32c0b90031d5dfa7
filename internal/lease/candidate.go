package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// candidate is the state machine of an [Elector]. It makes no requests and reads no clock. Its caller passes in
// the Leases that it has read and written, with readings of the clock.
//
// An example with the default times. The lease lasts for 15 s, and the term for 10 s:
//
//	 0 s  the candidate reads a Lease that A holds, renewed at 09:00:00 by the clock of A
//	 2 s  it reads the Lease with the renewal 09:00:02. So A is alive, and the wait begins anew
//	 4 s  it reads the same record, which proves nothing: the lease is free at 2 s + 15 s
//	17 s  it sends a claim, which names it as the holder
//	18 s  the server answers. The term began at 17 s, when the claim was sent, and ends at 27 s
type candidate struct {
	namespace, name string
	identity        string
	timing          Timing

	// isSeen is true once the state of the Lease is known.
	isSeen bool
	// seen is the Lease as it was seen last. It is nil if the Lease does not exist.
	seen *Lease
	// seenAt is when the record in seen was seen first. Other machines set the times in the record.
	// Therefore these times are never compared with a clock of this machine.
	seenAt Reading

	// leads is true from the beginning of the term on.
	leads bool
	// sent is when the last successful renewal was sent. The claim is the first renewal.
	sent Reading
	// hasUnanswered is true if a write after the last successful renewal has no answer. The server may have
	// carried it out. unansweredSent is when the first write of this kind was sent.
	hasUnanswered  bool
	unansweredSent Reading
}

// observe records the state of the Lease. l is nil if the Lease does not exist. An unchanged record does not prove
// that its holder is alive.
func (c *candidate) observe(l *Lease, at Reading) {
	isSame := c.isSeen && (l == nil) == (c.seen == nil) && recordOf(l) == recordOf(c.seen)
	c.isSeen, c.seen = true, l
	if !isSame {
		c.seenAt = at
	}
}

// untilFree returns how long another candidate still holds the lease, as far as this candidate knows. It returns
// zero for a lease that can be taken.
func (c *candidate) untilFree(now Reading) time.Duration {
	r := recordOf(c.seen)
	if c.seen == nil || r.holder == "" || c.isHolder() {
		return 0
	}
	return max(0, r.duration(c.timing.Duration)-now.shortestSince(c.seenAt))
}

// isHolder reports whether the Lease names this candidate.
func (c *candidate) isHolder() bool { return c.seen != nil && recordOf(c.seen).holder == c.identity }

// holder returns the identity that the Lease names. It is empty for a lease that is free.
func (c *candidate) holder() string { return recordOf(c.seen).holder }

// claim returns the Lease that this candidate writes to take or renew the lease at the time now.
func (c *candidate) claim(now time.Time) *Lease {
	l, before := c.seen, recordOf(c.seen)
	after := record{
		holder: c.identity, durationSeconds: int32(c.timing.Duration / time.Second),
		acquired: now.UnixMicro(), renewed: now.UnixMicro(), transitions: before.transitions,
	}
	switch {
	case l == nil:
		l = &Lease{Metadata: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name}}
	case before.holder == c.identity:
		after.acquired = before.acquired
		// Other candidates recognize a renewal by its time. This clock may have been set back.
		if after.renewed == before.renewed {
			after.renewed++
		}
	default:
		after.transitions++
	}
	return withRecord(l, after)
}

// released returns the Lease that this candidate writes to release the lease at the time now. client-go writes
// the same: no holder, and the shortest possible duration.
func (c *candidate) released(now time.Time) *Lease {
	return withRecord(c.seen, record{
		durationSeconds: 1, acquired: now.UnixMicro(), renewed: now.UnixMicro(), transitions: recordOf(c.seen).transitions,
	})
}

// recordSuccess records that the server has stored l. sent is the reading when l was sent.
func (c *candidate) recordSuccess(l *Lease, sent Reading) {
	c.observe(l, sent)
	c.leads, c.sent, c.hasUnanswered = true, sent, false
}

// recordUnanswered records a write without an answer. sent is the reading when the write was sent.
func (c *candidate) recordUnanswered(sent Reading) {
	if !c.hasUnanswered {
		c.hasUnanswered, c.unansweredSent = true, sent
	}
}

// recordFound records that the server has shown l. The holder of l is this candidate. recordFound returns true if
// l shows that the server carried out a write without an answer. That write renewed the lease. Nothing shows which
// write it was, so the first write without an answer counts.
//
// For example, renewals were sent at 2 s and 4 s, and neither was answered. At 6 s the server shows a changed
// record. It may be the renewal of 2 s, so the term ends at 12 s.
func (c *candidate) recordFound(l *Lease, now Reading) (isRenewed bool) {
	isRenewed = c.hasUnanswered && recordOf(l) != recordOf(c.seen)
	c.observe(l, now)
	if isRenewed {
		c.leads, c.sent, c.hasUnanswered = true, c.unansweredSent, false
	}
	return isRenewed
}

// timeLeft returns how much is left of the term. It returns zero or less without a term, and after the deadline.
func (c *candidate) timeLeft(now Reading) time.Duration {
	if !c.leads {
		return 0
	}
	return c.timing.Deadline - now.longestSince(c.sent)
}
