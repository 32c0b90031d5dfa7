package conversion

import (
	"context"
	"fmt"
	"sync"
)

const (
	// maxBody bounds the body of a call, in bytes. API servers accept objects of 3 MiB, and mostly convert one object in a
	// call.
	maxBody = 32 << 20
	// maxBodies bounds the bodies of all calls in flight, in bytes. The body of a call whose function has not returned
	// counts too.
	maxBodies = 64 << 20
)

// capacity counts the calls in flight and their bodies, and waits for their end.
type capacity struct {
	mu sync.Mutex
	// bytes is the size of all bodies that are kept.
	bytes int64
	// running counts the calls in flight, and those whose function goes on after the answer.
	running int
	// idle is closed when running becomes zero. It is nil before the first call.
	idle chan struct{}
}

// begin adds a call. The caller ends it by end.
func (c *capacity) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 {
		c.idle = make(chan struct{})
	}
	c.running++
}

func (c *capacity) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 {
		close(c.idle)
	}
}

// wait waits until no call is in flight. It returns an error if ctx ends before.
func (c *capacity) wait(ctx context.Context) error {
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
			return fmt.Errorf("%d calls of conversions have not ended: %w", running, ctx.Err())
		}
	}
}

// reserve reports whether there is place for n more bytes of bodies. If so, the caller gives them back by release.
func (c *capacity) reserve(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	hasPlace := c.bytes+n <= maxBodies
	if hasPlace {
		c.bytes += n
	}
	return hasPlace
}

func (c *capacity) release(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= n
}
