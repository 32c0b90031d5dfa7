package operator

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/yare-go/yare/internal/feature"
)

// Idle connections cost the program memory without a bound: 3,000 took 100 MB. Beyond the bound the connection that was
// idle longest is closed, and nobody is refused.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	listener, err := feature.Listen(t.Context(), "--listen", "127.0.0.1:0")
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
