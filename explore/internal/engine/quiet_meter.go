package engine

import (
	"context"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
)

// quietMeter measures for how long nothing has happened in a run. Its methods are safe for concurrent use.
type quietMeter struct {
	// proxyActivity returns what passes the proxy of the run.
	proxyActivity func() proxy.Activity
	// lastChange returns when an object of the run changed last.
	lastChange func() time.Time
	// lastPart returns when data passed to the external system last. It is nil if there is no external system.
	lastPart func() time.Time

	mu sync.Mutex
	// lastAct is when the user or a fault did something last.
	lastAct time.Time
}

// recordAct records that the user or a fault does something now.
func (m *quietMeter) recordAct() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastAct = time.Now()
}

// measure returns for how long nothing has happened. It reports whether a request or a delivery is under way.
func (m *quietMeter) measure() (quiet time.Duration, isBusy bool) {
	activity := m.proxyActivity()
	m.mu.Lock()
	last := m.lastAct
	m.mu.Unlock()
	times := []time.Time{m.lastChange(), activity.LastRequest, activity.LastEvent}
	if m.lastPart != nil {
		times = append(times, m.lastPart())
	}
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return time.Since(last), activity.InFlight > 0 || activity.StreamsBehind > 0 && activity.Held == 0
}

// waitForReaction waits until the program has reacted to a change of the user, and has been quiet for a moment. It
// waits for a second at most.
func (m *quietMeter) waitForReaction(ctx context.Context) error {
	const interval, quietFor, limit = 60 * time.Millisecond, 60 * time.Millisecond, time.Second
	for began := time.Now(); ; {
		if err := clock.SleepReal(ctx, interval); err != nil {
			return err
		}
		quiet, isBusy := m.measure()
		if !isBusy && quiet >= quietFor || time.Since(began) > limit {
			return nil
		}
	}
}
