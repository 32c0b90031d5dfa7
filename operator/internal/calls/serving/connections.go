package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// handshakeTime is how long a new connection may take, from the end of the drain, until its first request has arrived.
const handshakeTime = 2 * time.Second

// connections are the open connections of a [Server].
type connections struct {
	mu sync.Mutex
	// open holds each open connection with its last state.
	open map[*conn]http.ConnState
	// changed is closed and made anew when a connection is closed.
	changed chan struct{}
}

func newConnections() *connections {
	return &connections{open: make(map[*conn]http.ConnState), changed: make(chan struct{})}
}

// recordState records a new state of a connection. It is the ConnState of an [http.Server].
func (c *connections) recordState(accepted net.Conn, state http.ConnState) {
	if secure, ok := accepted.(*tls.Conn); ok {
		accepted = secure.NetConn()
	}
	own, ok := accepted.(*conn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateIdle:
		own.recordIdle()
		c.open[own] = state
	case http.StateClosed, http.StateHijacked:
		delete(c.open, own)
		close(c.changed)
		c.changed = make(chan struct{})
	default:
		c.open[own] = state
	}
}

// closeAll closes each connection when it has no request, and returns when none is left or ctx ends.
func (c *connections) closeAll(ctx context.Context) {
	began := time.Now()
	for {
		c.mu.Lock()
		for each, state := range c.open {
			if state == http.StateIdle || state == http.StateNew && time.Since(began) >= handshakeTime {
				each.expire()
			}
		}
		left, changed := len(c.open), c.changed
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-changed:
		case <-time.After(handshakeTime):
		case <-ctx.Done():
			return
		}
	}
}
