package clock

import (
	"context"
	"sync"
	"time"
)

// Sleeper lets one goroutine repeat something, with waits on a clock in between. The clock is not moved
// while the goroutine does not sleep.
type Sleeper struct {
	sync.Mutex
	clock  *Clock
	remove func()
	timer  *time.Timer

	// isAsleep is true from the call of Sleep until due.
	isAsleep bool
	due      time.Time
}

// NewSleeper returns a sleeper on c, which must be closed. Errors show name.
func NewSleeper(c *Clock, name string) *Sleeper {
	s := &Sleeper{clock: c, timer: time.NewTimer(0)}
	s.remove = c.Add(name, s)
	return s
}

// Sleep waits for d. It returns false if ctx ends before.
func (s *Sleeper) Sleep(ctx context.Context, d time.Duration) bool {
	s.Lock()
	s.isAsleep, s.due = true, s.clock.Now().Add(d)
	s.timer.Reset(d)
	s.Unlock()
	s.clock.SignalRest()
	select {
	case <-s.timer.C:
	case <-ctx.Done():
		return false
	}
	s.Lock()
	defer s.Unlock()
	s.isAsleep = false
	return true
}

// Close ends the use of the sleeper.
func (s *Sleeper) Close() {
	s.timer.Stop()
	s.remove()
}

// IsAtRestLocked implements [Member].
func (s *Sleeper) IsAtRestLocked() bool { return s.isAsleep && s.clock.Now().Before(s.due) }

// UntilDueLocked implements [Member].
func (s *Sleeper) UntilDueLocked() (time.Duration, bool) { return s.clock.Until(s.due), true }

// AfterMoveLocked implements [Member].
func (s *Sleeper) AfterMoveLocked() { s.timer.Reset(max(s.clock.Until(s.due), 0)) }

// SleepReal waits in real time until d has passed or ctx has ended. It returns the cause of the end of ctx, or nil if
// ctx has not ended.
func SleepReal(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
