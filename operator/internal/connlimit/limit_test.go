package connlimit

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
)

// closable is a connection of an address. It records whether it is closed.
type closable struct {
	net.Conn
	name, address string
	isClosed      bool
}

func (c *closable) Close() error         { c.isClosed = true; return nil }
func (c *closable) RemoteAddr() net.Addr { return address(c.address + ":1234") }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// Each case has steps, such as "new a/x" for a new connection a of the address x, and wants the closed connections after each step.
func TestConnectionToClose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bound int
		steps []string
		want  string
	}{
		"the example of Limit": {3, []string{
			"new a/x", "active a/x", "idle a/x", "new b/x", "active b/x", "idle b/x", "new c/y", "new d/y", "active b/x", "new e/y",
		}, "a c"},
		// In a flood of connections over TLS, one of seven was closed during its handshake, which its client takes for a refusal.
		"a handshake outlives an idle connection":                 {2, []string{"new a/x", "new b/x", "active b/x", "idle b/x", "new c/x"}, "b"},
		"without an idle one, the first without a request closes": {2, []string{"new a/x", "new b/x", "new c/x"}, "a"},
		"a request that has not come completely":                  {2, []string{"new a/x", "active a/x", "new b/x", "active b/x", "new c/x"}, "a"},
		"a call never closes":                                     {1, []string{"new a/x", "active a/x", "call a/x", "new b/x", "new c/x"}, "b"},
		"a call counts again when it has been answered":           {1, []string{"new a/x", "active a/x", "call a/x", "new b/x", "idle a/x"}, "b"},
		// Regression: idle connections of one stranger took the memory of the program. Those of others stay.
		"the busiest address": {4, []string{"new a/server", "active a/server", "idle a/server", "new b/x", "new c/x", "new d/x", "new e/x", "new f/x", "new g/server"}, "b c d"},
		"a closed one":        {1, []string{"new a/x", "closed a/x", "new b/x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := map[string]http.ConnState{
				"new": http.StateNew, "active": http.StateActive, "idle": http.StateIdle, "closed": http.StateClosed,
			}
			server := &http.Server{}
			New(c.bound).Apply(server)
			conns := make(map[string]*closable)
			var closed []string
			for _, step := range c.steps {
				action, id, _ := strings.Cut(step, " ")
				name, from, _ := strings.Cut(id, "/")
				if conns[name] == nil {
					conns[name] = &closable{name: name, address: from}
				}
				if action == "call" {
					RecordCall(server.ConnContext(context.Background(), conns[name]))
				} else {
					server.ConnState(conns[name], states[action])
				}
				for _, each := range conns {
					if each.isClosed {
						each.isClosed = false
						closed = append(closed, each.name)
					}
				}
			}
			if got := strings.Join(closed, " "); got != c.want {
				t.Errorf("closed %q, want %q", got, c.want)
			}
		})
	}
}

// tlsLike is a TLS connection whose client does not read: it cannot send its end.
type tlsLike struct {
	net.Conn
	inner *closable
}

func (c tlsLike) NetConn() net.Conn    { return c.inner }
func (c tlsLike) RemoteAddr() net.Addr { return c.inner.RemoteAddr() }

func (tlsLike) Close() error { panic("the listener waits for a client") }

// A TLS connection sends its end when it closes, and waits up to five seconds for a client that does not read. Nobody else
// could connect meanwhile.
func TestSurplusTLSConnectionsCloseAtOnce(t *testing.T) {
	t.Parallel()
	first, second := closable{address: "x"}, closable{address: "x"}
	bound := New(1)
	bound.recordState(tlsLike{inner: &first}, http.StateNew)
	bound.recordState(&second, http.StateNew)
	if !first.isClosed || second.isClosed {
		t.Error("the first connection should be closed alone")
	}
}
