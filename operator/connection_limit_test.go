package operator

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// Idle connections cost the program memory without a bound: 3,000 took 100 MB. Beyond the bound the connection that was
// idle longest is closed, and nobody is refused.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	listener, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	release, arrived := make(chan struct{}), make(chan struct{})
	s := serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-release
		}
		fmt.Fprint(w, "ok")
	}), slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
	defer s.close()
	open := func() (net.Conn, *bufio.Reader) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	get := func(conn net.Conn, in *bufio.Reader, path string) error {
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
			return err
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	slow, slowIn := open()
	answered := make(chan error, 1)
	go func() { answered <- get(slow, slowIn, "/slow") }()
	<-arrived
	first, firstIn := open()
	if err := get(first, firstIn, "/"); err != nil {
		t.Fatal(err)
	}
	for range 2 * maxConnections {
		conn, in := open()
		if err := get(conn, in, "/"); err != nil {
			t.Fatalf("a new connection: %v", err)
		}
	}
	if _, err := firstIn.ReadByte(); err == nil {
		t.Error("the connection that was idle longest is open")
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("a request that was under way: %v", err)
	}
}

// closable is a connection that records whether it is closed.
type closable struct {
	net.Conn
	isClosed bool
}

func (c *closable) Close() error { c.isClosed = true; return nil }

// The example of the comment of connectionLimit.
func TestConnectionToClose(t *testing.T) {
	t.Parallel()
	var a, b, c, d closable
	bound := newConnectionLimit(2)
	for _, conn := range []*closable{&a, &b} {
		bound.recordState(conn, http.StateNew)
		bound.recordState(conn, http.StateActive)
		bound.recordState(conn, http.StateIdle)
	}
	bound.recordState(&c, http.StateNew)
	if !a.isClosed || b.isClosed || c.isClosed {
		t.Error("a should be closed alone")
	}
	bound.recordState(&b, http.StateActive)
	bound.recordState(&d, http.StateNew)
	if !c.isClosed || b.isClosed || d.isClosed {
		t.Error("c should be closed, and b and d should be open")
	}
}

// tlsLike is a TLS connection whose client does not read: it cannot send its end.
type tlsLike struct {
	net.Conn
	inner *closable
}

func (c tlsLike) NetConn() net.Conn { return c.inner }

func (tlsLike) Close() error { panic("the listener waits for a client") }

// A TLS connection sends its end when it closes, and waits up to five seconds for a client that does not read. Nobody else
// could connect meanwhile.
func TestSurplusTLSConnectionsCloseAtOnce(t *testing.T) {
	t.Parallel()
	var first, second closable
	bound := newConnectionLimit(1)
	bound.recordState(tlsLike{inner: &first}, http.StateNew)
	bound.recordState(&second, http.StateNew)
	if !first.isClosed || second.isClosed {
		t.Error("the first connection should be closed alone")
	}
}

// A connection whose client is about to send its first request stays while others are idle. In a flood of connections over
// TLS, one of seven was closed during its handshake, which its client takes for a refusal.
func TestNewConnectionsOutliveIdleOnes(t *testing.T) {
	t.Parallel()
	var handshake, idle, next, last closable
	bound := newConnectionLimit(2)
	bound.recordState(&handshake, http.StateNew)
	bound.recordState(&idle, http.StateNew)
	bound.recordState(&idle, http.StateActive)
	bound.recordState(&idle, http.StateIdle)
	bound.recordState(&next, http.StateNew)
	if handshake.isClosed || !idle.isClosed || next.isClosed {
		t.Error("the idle connection should be closed alone")
	}
	bound.recordState(&last, http.StateNew)
	if !handshake.isClosed || next.isClosed || last.isClosed {
		t.Error("without an idle connection, the one that has been open longest without a request should be closed")
	}
}
