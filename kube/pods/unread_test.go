package pods_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/pods"
)

// long is longer than any timeout of a connection.
const long = time.Hour

// servePipes is like serve, over connections in memory, so that it works in a bubble of testing/synctest. It is called within the
// bubble. The caller calls close at the end of the bubble.
func servePipes(t *testing.T, protocol string, handle func(conn *websocket.Conn)) (c *kube.Client, close func()) {
	t.Helper()
	listener := pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.CloseNow() }()
		handle(conn)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	c, err := kube.NewClient(&kube.Config{Host: "http://server", Dial: listener.dial})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() {
		_ = server.Close()
		serving.Wait()
	}
}

// pipeListener is a net.Listener whose connections are pipes with a buffer, as the kernel has for connections of TCP.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, fromClient := net.Pipe()
	server, fromServer := net.Pipe()
	go copyBuffered(fromServer, fromClient) // both end with the connection
	go copyBuffered(fromClient, fromServer)
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// copyBuffered copies from one connection to another until one of them ends. It buffers 1,024 writes.
func copyBuffered(to, from net.Conn) {
	writes := make(chan []byte, 1024)
	go func() {
		defer close(writes)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			writes <- b[:n]
		}
	}()
	for b := range writes {
		if _, err := to.Write(b); err != nil {
			_ = from.Close()
		}
	}
	_ = to.Close()
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// slowWriter takes what it gets in its first call after a long time.
type slowWriter struct {
	bytes.Buffer
	isAwake bool
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if !w.isAwake {
		w.isAwake = true
		time.Sleep(long)
	}
	return w.Buffer.Write(b)
}

// Bug: a command whose output was taken slowly ended with "the connection is dead", such as a backup that was piped into an
// upload.
func TestOutputThatIsTakenSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, end := servePipes(t, "v5.channel.k8s.io", func(conn *websocket.Conn) {
			ctx := conn.CloseRead(context.Background()) // answers the pings
			send(t, conn, 1, "part 1,")
			send(t, conn, 1, "part 2")
			send(t, conn, 3, success)
			<-ctx.Done()
		})
		defer end()
		var out slowWriter
		err := pods.Exec(t.Context(), c, "n", "web", pods.Command{Args: []string{"dump"}, Stdout: &out})
		if err != nil || out.String() != "part 1,part 2" {
			t.Errorf("the output is %q, %v", out.String(), err)
		}
	})
}

// Bug: a command that read its input slowly ended with "the connection is dead". The server reads no ping before the command has
// taken the input that came before the ping.
func TestInputThatIsTakenSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, end := servePipes(t, "v5.channel.k8s.io", func(conn *websocket.Conn) {
			time.Sleep(long)
			send(t, conn, 1, fmt.Sprint(len(input(conn))))
			send(t, conn, 3, success)
		})
		defer end()
		large := strings.Repeat("0123456789", 800_000)
		var out bytes.Buffer
		err := pods.Exec(t.Context(), c, "n", "web", pods.Command{Args: []string{"restore"}, Stdin: strings.NewReader(large), Stdout: &out})
		if err != nil || out.String() != "8000000" {
			t.Errorf("the command got %s bytes, %v", out.String(), err)
		}
	})
}

// Bug: a connection that nobody read for a minute ended, such as one that rested in the pool of a database driver.
func TestConnectionThatRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, end := servePipes(t, "v4.channel.k8s.io", func(conn *websocket.Conn) {
			send(t, conn, 0, "\x38\x15")
			send(t, conn, 1, "\x38\x15")
			_, message, err := conn.Read(context.Background()) // this also answers the pings
			if err != nil {
				t.Error(err)
				return
			}
			send(t, conn, 0, "answer to "+string(message[1:]))
			_, _, _ = conn.Read(context.Background())
		})
		defer end()
		conn, err := pods.Dial(t.Context(), c, "n", "web", 5432)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.Sleep(long)
		if _, err := io.WriteString(conn, "query"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(long) // the answer is taken slowly
		b := make([]byte, 64)
		n, err := conn.Read(b)
		if err != nil || string(b[:n]) != "answer to query" {
			t.Errorf("read %q, %v", b[:n], err)
		}
		// A read that gives up ends nothing.
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(b); err == nil {
			t.Error("a read after its deadline has no error")
		}
		if _, err := io.WriteString(conn, "another query"); err != nil {
			t.Errorf("write after a deadline for reads: %v", err)
		}
	})
}

// A server that does not answer pings is found dead, although the connection is open.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := make(chan struct{})
		c, end := servePipes(t, "v5.channel.k8s.io", func(conn *websocket.Conn) {
			send(t, conn, 1, "part 1")
			<-silent
		})
		defer end()
		defer close(silent)
		var out bytes.Buffer
		began := time.Now()
		err := pods.Exec(t.Context(), c, "n", "web", pods.Command{Args: []string{"dump"}, Stdout: &out})
		if err == nil || !strings.Contains(err.Error(), "the connection is dead") || time.Since(began) > 2*time.Minute {
			t.Errorf("after %s the error is %v", time.Since(began), err)
		}
	})
}
