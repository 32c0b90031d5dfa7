package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// connect sends a CONNECT request to the proxy at socket, and returns the status line of the response.
func connect(t *testing.T, socket, address string) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address)
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ReadString('\n'); err != nil || reader.Buffered() > 0 {
		t.Fatalf("%d bytes follow the response, %v", reader.Buffered(), err)
	}
	return conn, line
}

func TestProxy(t *testing.T) {
	folder, err := os.MkdirTemp("", "egress-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	proxy, err := Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn) // to the end of one direction
				_, _ = conn.Write([]byte(strings.ToUpper(string(text))))
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())

	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		conn, line := connect(t, socket, host+":"+port)
		if !strings.HasPrefix(line, "HTTP/1.1 200 ") {
			t.Errorf("%s: %s", host, line)
			continue
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.(*net.UnixConn).CloseWrite()
		if answer, err := io.ReadAll(conn); err != nil || string(answer) != "HELLO" {
			t.Errorf("%s: the answer is %q, %v", host, answer, err)
		}
	}
	for _, host := range []string{"10.96.0.10", "0.0.0.0", "[::]", "[fd00::1]", "example.com", "localhost.example.com", "169.254.169.254"} {
		if _, line := connect(t, socket, host+":"+port); !strings.HasPrefix(line, "HTTP/1.1 403 ") || !strings.Contains(line, "a url with 127.0.0.1") {
			t.Errorf("%s: %s", host, line)
		}
	}
	open, _ := connect(t, socket, "127.0.0.1:"+port)
	_ = listener.Close()
	if _, line := connect(t, socket, "127.0.0.1:"+port); !strings.HasPrefix(line, "HTTP/1.1 502 ") || !strings.Contains(line, "connection refused") {
		t.Errorf("a port that nobody listens on: %s", line)
	}
	proxy.Close()
	if _, err := io.ReadAll(open); err != nil {
		t.Error(err)
	}
}
