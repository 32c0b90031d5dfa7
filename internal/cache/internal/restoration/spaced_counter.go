package restoration

import (
	"sync"
	"time"
)

const (
	// minObservationInterval is the least time after the first observation until the second one
	// counts. Each further interval is twice as long as the one before.
	minObservationInterval = time.Minute
	// maxObservationInterval limits the intervals.
	maxObservationInterval = time.Hour
	// observationMemory is the time without an observation after which the next one is the first again.
	observationMemory = 24 * time.Hour
)

// spacedCounter counts the observations of one kind, such as the contradictions between one stream and the answers of
// the server. It leaves out an observation that follows too soon after the one that counted last. A server that answers
// from several caches of its own contradicts itself all the time, and each contradiction that counts leads to a list of
// the stream. So the intervals grow. All methods can be used concurrently.
//
// Example of a server that contradicts itself every ten seconds:
//
//	10:00:00   the 1st counts: a proof. The next one counts a minute later
//	10:01:00   the 2nd counts: the stream is listed. The next one counts 2 minutes later
//	10:03:00   the 3rd counts. The next one counts 4 minutes later
//	…          the 7th counts at 11:03:00. From then on one counts each hour
type spacedCounter struct {
	mu    sync.Mutex
	count int
	// counted is the time of the last observation that counted, and seen is the time of the last one at all.
	counted, seen time.Time
}

// record records an observation. It returns how many have counted so far, and the time until the next one counts.
// isCounted is false if this one does not count.
func (c *spacedCounter) record() (count int, interval time.Duration, isCounted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.seen) > observationMemory {
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

// intervalLocked returns the time from the last observation that counted to the next one.
func (c *spacedCounter) intervalLocked() time.Duration {
	interval := minObservationInterval
	for i := 1; i < c.count && interval < maxObservationInterval; i++ {
		interval *= 2
	}
	return min(interval, maxObservationInterval)
}
