package restoration

import (
	"sync"
	"time"
)

const (
	// minContradictionInterval is the least time after the first contradiction of a stream until the second one
	// counts. Each further interval is twice as long as the one before.
	minContradictionInterval = time.Minute
	// maxContradictionInterval limits the intervals.
	maxContradictionInterval = time.Hour
	// contradictionMemory is the time without a contradiction after which the next one is the first again.
	contradictionMemory = 24 * time.Hour
)

// contradictions counts the contradictions between what one stream shows and what the server answers. The first one
// is a proof of a restoration. A server that answers from several caches of its own contradicts itself all the
// time. So later contradictions only lead to a list of the stream, and their intervals grow. All methods can be used
// concurrently.
//
// Example of a server that contradicts itself every ten seconds:
//
//	10:00:00   the 1st counts: a proof. The next one counts a minute later
//	10:01:00   the 2nd counts: the stream is listed. The next one counts 2 minutes later
//	10:03:00   the 3rd counts. The next one counts 4 minutes later
//	…          the 7th counts at 11:03:00. From then on one counts each hour
type contradictions struct {
	mu    sync.Mutex
	count int
	// counted is the time of the last contradiction that counted, and seen is the time of the last one at all.
	counted, seen time.Time
}

// record records a contradiction. It returns the number of those that have counted, and the time until the next one
// counts. isCounted is false if this one does not count.
func (c *contradictions) record() (count int, interval time.Duration, isCounted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.seen) > contradictionMemory {
		c.count = 0
	}
	c.seen = now
	if c.count > 0 && now.Sub(c.counted) < c.intervalLocked() {
		return c.count, 0, false
	}
	c.count++
	c.counted = now
	return c.count, c.intervalLocked(), true
}

// intervalLocked returns the time from the last contradiction that counted to the next one.
func (c *contradictions) intervalLocked() time.Duration {
	interval := minContradictionInterval
	for i := 1; i < c.count && interval < maxContradictionInterval; i++ {
		interval *= 2
	}
	return min(interval, maxContradictionInterval)
}
