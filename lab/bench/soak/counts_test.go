package soak

import (
	"maps"
	"sync"
)

// counts counts by name. Its methods are safe for concurrent use.
type counts struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]int)
	}
	c.by[name]++
}

// all returns a copy of the counts.
func (c *counts) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.by)
}
