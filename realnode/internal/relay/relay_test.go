//go:build linux

package relay

import (
	"bufio"
	"net"
	"net/netip"
	"testing"
)

func TestRelayForwardsBothWaysAndEnds(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if _, err := conn.Write([]byte("heard " + lines.Text() + "\n")); err != nil {
				return
			}
		}
	}()
	r, err := Start(netip.MustParseAddrPort("127.0.0.1:0"), "lo", server.Addr().String())
	if err != nil {
		t.Skipf("this user may not bind a socket to a link: %v", err)
	}
	conn, err := net.Dial("tcp", r.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); line != "heard one\n" {
		t.Fatalf("the answer is %q, %v", line, err)
	}
	r.Close()
	if _, err := answers.ReadString('\n'); err == nil {
		t.Error("the connection is open after Close")
	}
	if conn, err := net.Dial("tcp", r.Address().String()); err == nil {
		conn.Close()
		t.Error("the relay accepts connections after Close")
	}
}
