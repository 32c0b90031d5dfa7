// Package connlimit bounds the open connections of the servers of a program.
package connlimit

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Limit bounds the open connections of an [http.Server]. If one connection too many is opened, it closes a connection
// of the address that has the most: the one that has been idle longest since its last answer. If none of that address
// is idle, it closes the one that has been open longest without a request, or else the one whose request began first. A
// connection with a call, as [RecordCall] records it, does not count and is never closed. So nobody can keep the server
// from others, or use up the memory of the program, by holding connections open. A Limit is safe for concurrent use.
//
// An example with a bound of 3. The address x has the idle connections a and b, and b had the last request. The address
// y has c. Then y opens d: a closes, because x and y have two each, and a is the idlest. A request arrives on b, and y
// opens e: c closes, because y has the most.
type Limit struct {
	bound int

	mu sync.Mutex
	// open holds the open connections, the one whose state changed last at the end.
	open []connection
	// counts holds the number of connections of each address in open that have no call. It has no zeros.
	counts map[string]int
	// counted is the sum of counts.
	counted int
}

// connection is an open connection.
type connection struct {
	conn    net.Conn
	address string
	// state is StateIdle after an answer, StateNew before the first request, which follows the handshake of TLS, and
	// StateActive while a request is read or answered.
	state http.ConnState
	// hasCall is true from RecordCall until the next change of the state.
	hasCall bool
}

// New returns a bound of n connections.
func New(n int) *Limit { return &Limit{bound: n, counts: make(map[string]int)} }

// Apply makes a server keep the bound. It wraps the hooks that the server has.
func (l *Limit) Apply(s *http.Server) {
	before := s.ConnState
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if before != nil {
			before(conn, state)
		}
		l.recordState(conn, state)
	}
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, callKey{}, func() { l.recordCall(conn) })
	}
}

type callKey struct{}

// RecordCall records that the whole request of a connection has been read. ctx is the context of the request.
func RecordCall(ctx context.Context) {
	if record, ok := ctx.Value(callKey{}).(func()); ok {
		record()
	}
}

// recordCall records that a connection has a call.
func (l *Limit) recordCall(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.open {
		if each := &l.open[i]; each.conn == conn && !each.hasCall {
			l.countLocked(each.address, -1)
			each.hasCall = true
		}
	}
}

// recordState records a new state of a connection. It is the ConnState of an [http.Server].
func (l *Limit) recordState(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	l.removeLocked(conn)
	var surplus net.Conn
	switch state {
	case http.StateNew, http.StateIdle, http.StateActive:
		address := addressOf(conn)
		l.open = append(l.open, connection{conn: conn, address: address, state: state})
		l.countLocked(address, 1)
		if l.counted > l.bound {
			surplus = l.surplusLocked()
			l.removeLocked(surplus)
		}
	}
	l.mu.Unlock()
	if inner, ok := surplus.(interface{ NetConn() net.Conn }); ok {
		// A TLS connection would first send its end, and wait for a client that does not read. The listener waits meanwhile.
		surplus = inner.NetConn()
	}
	if surplus != nil {
		_ = surplus.Close() // the server then ends the connection
	}
}

// surplusLocked returns the connection to close, of an address with the most connections. The last connection has just
// changed its state: it is closed only if no other one can be.
func (l *Limit) surplusLocked() net.Conn {
	most := 0
	for _, n := range l.counts {
		most = max(most, n)
	}
	last := len(l.open) - 1
	for _, state := range []http.ConnState{http.StateIdle, http.StateNew, http.StateActive} {
		for _, each := range l.open[:last] {
			if each.state == state && !each.hasCall && l.counts[each.address] == most {
				return each.conn
			}
		}
	}
	return l.open[last].conn
}

// removeLocked removes a connection, if it is open.
func (l *Limit) removeLocked(conn net.Conn) {
	for i, each := range l.open {
		if each.conn == conn {
			if !each.hasCall {
				l.countLocked(each.address, -1)
			}
			l.open = append(l.open[:i], l.open[i+1:]...)
			return
		}
	}
}

// countLocked adds n connections without a call to those of an address.
func (l *Limit) countLocked(address string, n int) {
	l.counted += n
	if l.counts[address] += n; l.counts[address] == 0 {
		delete(l.counts, address)
	}
}

// addressOf returns the address of the other end, without its port.
func addressOf(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address // that of a Unix socket
}
