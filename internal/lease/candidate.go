package lease

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// candidate is the state machine of an [Elector]. It makes no requests and reads no clock. Its caller passes in
// the Leases that it has read and written, with readings of the clock.
//
// An example with the default times. The lease lasts for 30 s, and the deadline is 20 s after the last renewal:
//
//	 0 s  the candidate reads a Lease that A holds, renewed at 09:00:00 by the clock of A
//	 4 s  it reads the Lease with the renewal 09:00:04. So A is alive, and holds the lease until 4 s + 30 s
//	 8 s  it reads the same record, which proves nothing
//	 9 s  somebody has deleted the Lease. A may have renewed it and may act, so A holds the lease until 9 s + 30 s
//	39 s  it sends a claim, which names it as the holder
//	40 s  the server answers. The term begins. Its deadline is 59 s, because the claim was sent at 39 s
type candidate struct {
	namespace, name string
	identity        string
	// kindsHash is the value of the label of the Lease. It is empty for none.
	kindsHash string
	timing    Timing

	// seen is the Lease as it was seen last. It is nil if the Lease was absent, or was not seen yet.
	seen *Lease
	// heldUntil is the latest time at which another process may still act as the leader. It follows from the records in
	// the Lease that exists, and is a time of the steady clock of this process. The duration of a record counts from the
	// moment at which this process saw the record, or saw that the record had vanished. Other machines set the times in
	// the records. Therefore these times are never compared with a clock of this machine.
	heldUntil time.Duration
	// deletedHeldUntil is the same time for the records of Leases that somebody has deleted. An orderly release does not
	// end this time: the process that has released the present Lease may not know of the holder of a deleted Lease.
	deletedHeldUntil time.Duration
	// ownRecords holds the records that this process has sent within the last Timing.Duration, and when it sent each
	// of them. A record that names this process and is not in ownRecords is the work of somebody else: an edit by
	// hand, or a copy of this process.
	ownRecords map[record]Reading

	// hasLed is true from the beginning of the term on.
	hasLed bool
	// lastRenewal is when the last successful renewal was sent. The claim is the first renewal.
	lastRenewal Reading
}

// observe records the state of the Lease. l is nil if the Lease does not exist. An unchanged record does not prove
// that its holder is alive. The holder of a record that has vanished may have renewed it a moment before.
func (c *candidate) observe(l *Lease, at Reading) {
	former, before, after := c.seen, recordOf(c.seen), recordOf(l)
	isDeleted := former != nil && (l == nil || l.Metadata.UID != former.Metadata.UID)
	c.seen = l
	if before.mayHaveLeader() && (isDeleted || !after.mayHaveLeader() && !after.isReleased()) {
		c.extendHeldUntil(before, at)
	}
	if isDeleted {
		c.deletedHeldUntil, c.heldUntil = max(c.deletedHeldUntil, c.heldUntil), 0
	}
	if after != before && after.mayHaveLeader() && !c.hasSent(l) {
		c.extendHeldUntil(after, at)
	}
}

// extendHeldUntil records that a process may act as the leader because of r for the duration of r, from a reading on.
func (c *candidate) extendHeldUntil(r record, from Reading) {
	c.heldUntil = max(c.heldUntil, from.steady+r.duration(c.timing.Duration))
}

// untilFree returns how long another candidate may still act as the leader, as far as this candidate knows. It
// returns zero for a lease that can be taken.
func (c *candidate) untilFree(now Reading) time.Duration {
	heldUntil := max(c.heldUntil, c.deletedHeldUntil)
	if recordOf(c.seen).isReleased() {
		heldUntil = c.deletedHeldUntil
	}
	return max(0, heldUntil-now.steady)
}

// isReleased reports whether the former leader has released the Lease that exists, and no Lease was deleted by hand
// while somebody held it.
func (c *candidate) isReleased() bool {
	return c.deletedHeldUntil == 0 && recordOf(c.seen).isReleased()
}

// hasSent reports whether this process has sent the record in l.
func (c *candidate) hasSent(l *Lease) bool {
	_, isOwn := c.ownRecords[recordOf(l)]
	return isOwn
}

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
	default:
		after.transitions++
	}
	// Others recognize a renewal by its time, and this process its own records. This clock may have been set back.
	for _, isSent := c.ownRecords[after]; isSent || after.renewed == before.renewed; _, isSent = c.ownRecords[after] {
		after.renewed++
	}
	l = withRecord(l, after)
	if c.kindsHash != "" {
		labels := map[string]string{labelKinds: c.kindsHash}
		for name, value := range l.Metadata.Labels {
			if name != labelKinds {
				labels[name] = value
			}
		}
		l.Metadata.Labels = labels
	}
	return l
}

// release returns the Lease that this candidate writes to release the lease at the time now. client-go writes
// the same: no holder, and the shortest possible duration.
func (c *candidate) release(now time.Time) *Lease {
	return withRecord(c.seen, record{
		durationSeconds: 1, acquired: now.UnixMicro(), renewed: now.UnixMicro(), transitions: recordOf(c.seen).transitions,
	})
}

// rememberSent adds the record of a claim that is about to be sent to the own records. sent is the present reading.
func (c *candidate) rememberSent(claim *Lease, sent Reading) {
	maps.DeleteFunc(c.ownRecords,
		func(_ record, earlier Reading) bool { return sent.longestSince(earlier) > c.timing.Duration })
	c.ownRecords[recordOf(claim)] = sent
}

// rememberStored records that the server has stored the claim l. A stored claim begins the term, or extends it. sent is
// the reading when l was sent.
func (c *candidate) rememberStored(l *Lease, sent Reading) {
	c.seen, c.hasLed, c.lastRenewal = l, true, sent
	c.ownRecords[recordOf(l)] = sent
}

// acceptFound accepts the Lease l that the server has shown the leader. It returns false, and changes nothing, if this
// process has not sent the record in l: then the lease is lost. The record may be a renewal without an answer, which
// extends the term.
//
// For example, renewals were sent at 4 s and 8 s, and neither was answered. At 12 s the server shows the record of
// 4 s, so the term ends at 24 s.
func (c *candidate) acceptFound(l *Lease) bool {
	sent, isOwn := c.ownRecords[recordOf(l)]
	if !isOwn {
		return false
	}
	c.seen = l
	if sent.steady > c.lastRenewal.steady {
		c.lastRenewal = sent
	}
	return true
}

// timeLeft returns how much is left of the term. It returns zero or less without a term, and after the deadline.
func (c *candidate) timeLeft(now Reading) time.Duration {
	if !c.hasLed {
		return 0
	}
	return c.timing.Deadline - now.longestSince(c.lastRenewal)
}
