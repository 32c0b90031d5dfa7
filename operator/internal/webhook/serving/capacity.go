package serving

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// MaxBodies bounds the bodies of all calls of a [Capacity] in flight, in bytes. The body of a call whose function has not
// returned counts too.
const MaxBodies = 64 << 20

// Capacity counts the calls in flight and their bodies, and waits for their end. A Capacity is safe for concurrent use.
type Capacity struct {
	bodyOnce sync.Once
	// bytes are the places of all bodies that are kept, one for each byte. It is nil before the first call.
	bytes *Places

	mu sync.Mutex
	// running counts the calls in flight and their functions. A call whose function has not returned counts twice.
	running int
	// idle is closed when running becomes zero. It is nil before the first call.
	idle chan struct{}
	// refused counts the refused calls since the last line about them, which was logged at the time logged.
	refused int
	logged  time.Time
}

// bodies returns the places of the bodies.
func (c *Capacity) bodies() *Places {
	c.bodyOnce.Do(func() { c.bytes = NewPlaces(MaxBodies) })
	return c.bytes
}

// Begin adds a call, or a function that may go on after the answer to its call. The caller ends it by [Capacity.End].
func (c *Capacity) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 {
		c.idle = make(chan struct{})
	}
	c.running++
}

// End ends what [Capacity.Begin] has added.
func (c *Capacity) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 {
		close(c.idle)
	}
}

// Wait waits until no call is in flight, and all functions have returned. It returns an error if ctx ends before.
func (c *Capacity) Wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		running, idle := c.running, c.idle
		c.mu.Unlock()
		if running == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("%d calls of API servers and functions of such calls have not ended: %w", running, ctx.Err())
		}
	}
}
