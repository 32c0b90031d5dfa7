package serving

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is a connection that can be closed without losing a request that has just arrived.
//
// An HTTP server waits for the next request in Read. expire ends this wait by a deadline in the past. Before Read
// returns the error of the deadline, it checks whether the kernel has bytes of a request. If so, Read returns the
// bytes, and the server answers the request and closes the connection.
//
// For example, expire is called at 15.000 s, and the bytes of a request have arrived at 14.999 s. Without the check
// the server closes the connection, and the call fails. A request that is still on its way through the network at that
// moment is lost.
type conn struct {
	net.Conn

	mu sync.Mutex
	// isExpired is true after expire.
	isExpired bool
	// hasRequest is true if bytes were read since the connection was idle.
	hasRequest bool
}

// Read reads bytes of a handshake or of requests.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if !c.endRead(n, err) {
			return n, err
		}
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return 0, err
		}
	}
}

// endRead records the result of a read. It reports whether the read ended by expire although a request is under way. If
// no request is under way, it closes the connection at once: a request that arrives between the check of the kernel and
// the end of the connection is lost.
func (c *conn) endRead(n int, err error) (isUnderWay bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.hasRequest = true
	}
	if n > 0 || !c.isExpired || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if !c.hasRequest && !hasBytes(c.Conn) {
		_ = c.Close() // the server closes it too
		return false
	}
	c.isExpired = false
	return true
}

// recordIdle records that the last request was answered.
func (c *conn) recordIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasRequest = false
}

// expire ends the wait for a request. It does nothing if a request has begun.
func (c *conn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasRequest {
		return
	}
	c.isExpired = true
	_ = c.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed is expired too
}

// hasBytes reports whether the kernel has received bytes that nobody has read.
func hasBytes(c net.Conn) (has bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	if err := raw.Control(func(fd uintptr) { has = hasUnreadBytes(fd) }); err != nil {
		return false
	}
	return has
}

// connListener accepts connections as [conn].
type connListener struct{ net.Listener }

// Accept returns the next connection.
func (l connListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}
