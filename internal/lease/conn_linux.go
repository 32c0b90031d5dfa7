package lease

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUndelivered makes the kernel give up a connection on which sent data was not acknowledged for
// the time limit (tcp(7), TCP_USER_TIMEOUT).
func limitUndelivered(c *net.TCPConn, limit time.Duration) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // the connection is closed
	}
	_ = raw.Control(func(fd uintptr) {
		// Without the option, only a stopped process behind a broken network can exceed the limit.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
