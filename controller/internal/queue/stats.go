package queue

import "time"

// Stats is a snapshot of a queue.
type Stats struct {
	Ready       int           // keys that wait for a worker
	Waiting     int           // keys that wait for their time
	Running     int           // keys that are being worked on
	OldestReady time.Duration // how long the oldest of Ready has been waiting
	Retries     uint64        // reconciles that failed, since New
	Adds        uint64        // triggers, since New
}

// Stats returns a snapshot of the queue.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.tick()
	s := Stats{
		Ready:   q.ready[Low].len + q.ready[Due].len + q.ready[High].len,
		Running: q.running,
		Retries: q.retries,
		Adds:    q.adds,
	}
	s.Waiting = q.table.len - s.Ready - s.Running

	oldest := now
	if e := q.ready[Low].first; e != nil {
		oldest = e.readyAt
	}
	// An entry that came from a list below stands behind younger ones.
	for _, class := range []Priority{Due, High} {
		for e := q.ready[class].first; e != nil; e = e.after {
			oldest = min(oldest, e.readyAt)
		}
	}
	s.OldestReady = time.Duration(now - oldest)
	return s
}

// RestartWaits restarts the waiting times of the keys that wait for a worker. It is for a queue that
// had no workers so far, on purpose.
func (q *Queue) RestartWaits() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.tick()
	for _, class := range []Priority{Low, Due, High} {
		for e := q.ready[class].first; e != nil; e = e.after {
			e.readyAt = now
		}
	}
}
