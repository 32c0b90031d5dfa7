package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// candidate is the state machine of an [Elector]. It makes no requests and reads no clock: its caller
// passes in what was read and what was written, with readings of the clock.
type candidate struct {
	namespace, name string
	identity        string
	timing          Timing

	// isSeen is true once the state of the Lease is known.
	isSeen bool
	// seen is the Lease as it was seen last. It is nil if the Lease does not exist.
	seen *Lease
	// seenAt is when the record in seen was seen first. The times in the record are never compared
	// with a clock, because other machines set them.
	seenAt Reading

	// leads is true from the beginning of the term on.
	leads bool
	// sent is when the last successful renewal was sent. The claim of the term is the first.
	sent Reading
	// unanswered is true if writes after the last successful one have no answer, so that the server
	// may have carried them out. unansweredSent is when the first of them was sent.
	unanswered     bool
	unansweredSent Reading
}

// observe records the state of the Lease. l is nil if the Lease does not exist. A record that is the
// same as before is no sign of life of its holder.
func (c *candidate) observe(l *Lease, at Reading) {
	isSame := c.isSeen && (l == nil) == (c.seen == nil) && recordOf(l) == recordOf(c.seen)
	c.isSeen, c.seen = true, l
	if !isSame {
		c.seenAt = at
	}
}

// untilFree returns how long the lease is still held by another candidate, as far as is known. It is
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

// claim returns the Lease as it is after this candidate has taken it or renewed it at the time now.
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
		// Other candidates recognize a renewal by its time, and this clock may have been set back.
		if after.renewed == before.renewed {
			after.renewed++
		}
	default:
		after.transitions++
	}
	return withRecord(l, after)
}

// released returns the Lease as it is after this candidate has released it at the time now. It is what
// client-go writes: nobody holds the lease, and it is valid for the shortest possible time.
func (c *candidate) released(now time.Time) *Lease {
	return withRecord(c.seen, record{
		durationSeconds: 1, acquired: now.UnixMicro(), renewed: now.UnixMicro(), transitions: recordOf(c.seen).transitions,
	})
}

// recordSuccess records that the server has stored l, which was sent at that reading.
func (c *candidate) recordSuccess(l *Lease, sent Reading) {
	c.observe(l, sent)
	c.leads, c.sent, c.unanswered = true, sent, false
}

// recordUnanswered records a write that was sent at that reading and has no answer.
func (c *candidate) recordUnanswered(sent Reading) {
	if !c.unanswered {
		c.unanswered, c.unansweredSent = true, sent
	}
}

// recordFound records that the server has shown l, in which this candidate is the holder. found
// reports whether l shows that a write without an answer was carried out, which renewed the lease. It
// counts as the first write without an answer, because nothing shows which write it was.
func (c *candidate) recordFound(l *Lease, now Reading) (found bool) {
	found = c.unanswered && recordOf(l) != recordOf(c.seen)
	c.observe(l, now)
	if found {
		c.leads, c.sent, c.unanswered = true, c.unansweredSent, false
	}
	return found
}

// left returns how much is left of the term. It is at most zero without a term, and after the
// deadline.
func (c *candidate) left(now Reading) time.Duration {
	if !c.leads {
		return 0
	}
	return c.timing.Deadline - now.longestSince(c.sent)
}
