package lease

import (
	"context"
	"net"
	"time"
)

// Dialer opens connections, as the field Dial of kube.Config.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer returns dial with connections that send nothing after the deadline. dial may be nil.
//
// The kernel must not deliver data later that it has not delivered when the process ends. Therefore the end
// of a connection discards such data. On Linux, the kernel also gives up a connection on which it could deliver
// nothing for the time between the deadline of the term and the take-over by another replica. Therefore no
// write of a stopped process is delivered then either. Besides, a dead connection is replaced before the lease
// is lost.
func (f *Fence) Dialer(dial Dialer) Dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it only fails on a closed connection
			limitUndelivered(tcp, f.timing.slack())
		}
		return fencedConn{c, f}, nil
	}
}

// fencedConn is a connection of a process with a fence.
type fencedConn struct {
	net.Conn
	fence *Fence
}

// Write sends p, unless the term is over.
func (c fencedConn) Write(p []byte) (int, error) {
	if !c.fence.isOpen() {
		return 0, ErrOver
	}
	return c.Conn.Write(p)
}
