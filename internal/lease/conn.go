package lease

import "net"

// fencedConn is a connection that sends nothing after the term.
type fencedConn struct {
	net.Conn
	term *term
}

// Write sends p, unless the term is over.
func (c fencedConn) Write(p []byte) (int, error) {
	if !c.term.isOpen() {
		return 0, ErrOver
	}
	return c.Conn.Write(p)
}
