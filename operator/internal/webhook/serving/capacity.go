package serving

import (
	"context"
	"fmt"
	"sync"
)

// MaxBodies bounds the bodies of all calls of a [Capacity] in flight, in bytes. The body of a call whose function has not
// returned counts too.
const MaxBodies = 64 << 20

// Capacity counts the calls in flight and their bodies, and waits for their end. A Capacity is safe for concurrent use.
type Capacity struct {
	mu sync.Mutex
	// bytes is the size of all bodies that are kept.
	bytes int64
	// running counts the calls in flight and their functions. A call whose function has not returned counts twice.
	running int
	// idle is closed when running becomes zero. It is nil before the first call.
	idle chan struct{}
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

// Reserve adds n bytes of a body if there is room for them, and reports whether there was. The caller then gives them back by
// [Capacity.Release].
func (c *Capacity) Reserve(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	hasRoom := c.bytes+n <= MaxBodies
	if hasRoom {
		c.bytes += n
	}
	return hasRoom
}

// Release gives back n bytes.
func (c *Capacity) Release(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= n
}
