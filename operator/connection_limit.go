package operator

import (
	"net"
	"net/http"
	"sync"
)

// maxConnections bounds the connections to the pages of a program. Prometheus and the kubelet need a few.
const maxConnections = 64

// connectionLimit bounds the open connections of a server. If one connection too many is opened, it closes the connection
// that has been idle longest since its last answer. If none is idle, it closes the connection that has been open longest
// without a request. If each connection has a request, it closes the one whose request began first. So nobody can
// keep the pages from others, or use up the memory of the program, by holding connections open.
//
// An example with a bound of 2. The connections a and b are idle, and b had the last request. Then c is opened: a closes.
// A request arrives on b, and d is opened: c closes, because c has no request and b has one.
type connectionLimit struct {
	bound int

	mu sync.Mutex
	// open holds the open connections, the one whose state changed last at the end.
	open []connection
}

// connection is an open connection.
type connection struct {
	conn net.Conn
	// state is StateIdle after an answer, StateNew before the first request, which follows the handshake of TLS, and
	// StateActive while a request is read or answered.
	state http.ConnState
}

// newConnectionLimit returns a bound of n connections.
func newConnectionLimit(n int) *connectionLimit { return &connectionLimit{bound: n} }

// recordState records a new state of a connection. It is the ConnState of an [http.Server].
func (c *connectionLimit) recordState(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	c.removeLocked(conn)
	var surplus net.Conn
	switch state {
	case http.StateNew, http.StateIdle, http.StateActive:
		c.open = append(c.open, connection{conn, state})
		if len(c.open) > c.bound {
			surplus = c.surplusLocked()
			c.removeLocked(surplus)
		}
	}
	c.mu.Unlock()
	if inner, ok := surplus.(interface{ NetConn() net.Conn }); ok {
		// A TLS connection would first send its end, and wait for a client that does not read. The listener waits meanwhile.
		surplus = inner.NetConn()
	}
	if surplus != nil {
		_ = surplus.Close() // the server then ends the connection
	}
}

// surplusLocked returns the connection to close: the first one that is idle, or else the first one without a request, or
// else the first one. The last connection has just changed its state, and stays.
func (c *connectionLimit) surplusLocked() net.Conn {
	for _, state := range []http.ConnState{http.StateIdle, http.StateNew} {
		for _, each := range c.open[:len(c.open)-1] {
			if each.state == state {
				return each.conn
			}
		}
	}
	return c.open[0].conn
}

// removeLocked removes a connection, if it is open.
func (c *connectionLimit) removeLocked(conn net.Conn) {
	for i, each := range c.open {
		if each.conn == conn {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return
		}
	}
}
