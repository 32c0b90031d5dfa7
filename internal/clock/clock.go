// Package clock is the time of a program: the real time, or in a test a time that the test moves
// forward.
package clock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a clock that a test moves forward. Its time is the real time plus the durations by which it was
// moved. A nil *Clock is the real clock. A Clock must not be copied.
type Clock struct {
	offset atomic.Int64
	// rest has an element whenever a member may have come to rest since the last receive.
	rest chan struct{}
	// advanceMu is held by the one Advance that is under way.
	advanceMu sync.Mutex

	mu sync.Mutex
	// members are in the order of their addition. Their locks are taken in this order.
	members []namedMember
}

// Member waits on a clock for work that becomes due. Its state does not change while its lock is held.
type Member interface {
	sync.Locker
	// IsAtRestLocked reports whether all work that is due has ended.
	IsAtRestLocked() bool
	// UntilDueLocked returns how long it takes until the next work is due. It returns false if no
	// time is set. The member is at rest.
	UntilDueLocked() (time.Duration, bool)
	// AfterMoveLocked starts the work that has become due because the clock was moved.
	AfterMoveLocked()
}

// namedMember is a Member with its name in errors.
type namedMember struct {
	Member
	name string
}

// New returns a clock that shows the real time until it is moved.
func New() *Clock { return &Clock{rest: make(chan struct{}, 1)} }

// Now returns the time of c.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	return time.Now().Add(time.Duration(c.offset.Load()))
}

// Since returns the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration {
	if c == nil {
		return time.Since(t)
	}
	return c.Now().Sub(t)
}

// Until returns the time that passes until t.
func (c *Clock) Until(t time.Time) time.Duration {
	if c == nil {
		return time.Until(t)
	}
	return t.Sub(c.Now())
}

// Add adds a member, and returns a function that removes it. Errors show name.
func (c *Clock) Add(name string, m Member) (remove func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, namedMember{m, name})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.members = slices.DeleteFunc(c.members, func(each namedMember) bool { return each.Member == m })
		c.SignalRest()
	}
}

// Hold keeps c from being moved until release is called. Errors show name.
func (c *Clock) Hold(name string) (release func()) { return c.Add(name, new(hold)) }

// SignalRest announces that a member may have come to rest. It does not block.
func (c *Clock) SignalRest() {
	if c == nil {
		return
	}
	select {
	case c.rest <- struct{}{}:
	default:
	}
}

// Advance moves c forward by d in steps. Each step waits until all members are at rest, and ends
// at the next time for which a member waits. Therefore each member sees each of its times. Advance
// returns when c was moved by d and all members are at rest. It returns an error when the members have
// not come to rest within timeout, or when ctx has ended.
//
// For example, a queue waits for 10:00 and for 10:05, and the clock shows 09:58. Advance by ten minutes has
// three steps: to 10:00, to 10:05 and to 10:08. After each of the first two steps the queue reconciles.
func (c *Clock) Advance(ctx context.Context, d, timeout time.Duration) error {
	c.advanceMu.Lock()
	defer c.advanceMu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		moved, busy := c.step(d)
		if len(busy) == 0 {
			if d == 0 {
				return nil
			}
			d -= moved
			timer.Reset(timeout)
			continue
		}
		select {
		case <-c.rest:
		case <-timer.C:
			return fmt.Errorf("%q did not come to rest within %s, with %s left to advance", busy, timeout, d)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// workReporter is a member that reports whether it works.
type workReporter interface {
	// IsWorkingLocked reports whether work of the member is under way.
	IsWorkingLocked() bool
}

// IsWorking reports whether work of a member is under way, such as a reconcile.
func (c *Clock) IsWorking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if w, ok := m.Member.(workReporter); ok {
			m.Lock()
			isWorking := w.IsWorkingLocked()
			m.Unlock()
			if isWorking {
				return true
			}
		}
	}
	return false
}

// step moves c to the next time for which a member waits, at most by d, and returns by how much. While members
// are busy, it moves nothing, and returns the names of these members.
func (c *Clock) step(d time.Duration) (moved time.Duration, busy []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// No member takes on or ends work between the check and the move. Otherwise a member that
	// is about to ask for a time would ask for it after the move, and wait too long.
	for _, m := range c.members {
		m.Lock()
		defer m.Unlock()
	}
	for _, m := range c.members {
		if !m.IsAtRestLocked() {
			busy = append(busy, m.name)
		}
	}
	if len(busy) > 0 {
		return 0, busy
	}
	moved = d
	for _, m := range c.members {
		if until, ok := m.UntilDueLocked(); ok {
			moved = min(moved, max(until, 0))
		}
	}
	c.offset.Add(int64(moved))
	for _, m := range c.members {
		m.AfterMoveLocked()
	}
	return moved, nil
}

// hold is a member that is busy and never waits.
type hold struct{ sync.Mutex }

func (*hold) IsAtRestLocked() bool                  { return false }
func (*hold) UntilDueLocked() (time.Duration, bool) { return 0, false }
func (*hold) AfterMoveLocked()                      {}

type contextKey struct{}

// With returns a context that carries c.
func With(ctx context.Context, c *Clock) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the clock that ctx carries, or nil.
func From(ctx context.Context) *Clock {
	c, _ := ctx.Value(contextKey{}).(*Clock)
	return c
}
