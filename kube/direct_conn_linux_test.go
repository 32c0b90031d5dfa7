//go:build !race

package kube

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// newConnPair returns both ends of a TCP connection. The test ends with both closed.
func newConnPair(t testing.TB) (direct net.Conn, other *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dialed.Close()
		_ = accepted.Close()
	})
	direct = newDirectConn(dialed)
	if _, isDirect := direct.(*directConn); !isDirect {
		t.Fatalf("the connection is a %T", direct)
	}
	return direct, accepted.(*net.TCPConn)
}

// Both directions carry more than the buffers of the sockets hold, at the same time, and their ends are ends.
func TestDirectConnCarriesWhatIsWritten(t *testing.T) {
	t.Parallel()
	direct, other := newConnPair(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	var working sync.WaitGroup
	for name, pair := range map[string]struct {
		from io.Writer
		to   io.Reader
		end  func() error
	}{
		"to the server":   {direct, other, direct.(*directConn).CloseWrite},
		"from the server": {other, direct, other.CloseWrite},
	} {
		working.Go(func() {
			if n, err := pair.from.Write(content); err != nil || n != len(content) {
				t.Errorf("%s: %d bytes were written: %v", name, n, err)
			}
			if err := pair.end(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		working.Go(func() {
			got, err := io.ReadAll(pair.to)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %d bytes were read: %v", name, len(got), err)
			}
		})
	}
	working.Wait()
}

// The errors are those of other connections: net/http and yare's retries look for them.
func TestDirectConnHasTheErrorsOfOtherConnections(t *testing.T) {
	t.Parallel()
	t.Run("closed while it reads", func(t *testing.T) {
		t.Parallel()
		direct, _ := newConnPair(t)
		go func() {
			time.Sleep(10 * time.Millisecond) // most often the read waits by now; the error is the same if it does not
			_ = direct.Close()
		}()
		_, err := direct.Read(make([]byte, 1))
		op, isOp := errors.AsType[*net.OpError](err)
		if !errors.Is(err, net.ErrClosed) || !isOp || op.Op != "read" {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		direct, _ := newConnPair(t)
		if err := direct.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := direct.Read(make([]byte, 1))
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		direct, other := newConnPair(t)
		if err := other.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := direct.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the error of the read is %v", err)
		}
		if _, err := direct.Write([]byte{0}); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the error of the write is %v", err)
		}
	})
	t.Run("no bytes", func(t *testing.T) {
		t.Parallel()
		direct, _ := newConnPair(t)
		if n, err := direct.Read(nil); n != 0 || err != nil {
			t.Errorf("a read of no bytes returns %d, %v", n, err)
		}
		if n, err := direct.Write(nil); n != 0 || err != nil {
			t.Errorf("a write of no bytes returns %d, %v", n, err)
		}
	})
}

// Another connection than TCP, such as that of a test, stays as it is.
func TestDirectConnIsForTCP(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := newDirectConn(a); got != a {
		t.Errorf("a pipe became a %T", got)
	}
}

func TestDirectConnAllocatesNothing(t *testing.T) {
	direct, other := newConnPair(t)
	buffer := make([]byte, 16)
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := direct.Write(buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(other, buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write(buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := direct.Read(buffer); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 0 {
		t.Errorf("a call allocates %v times", allocations)
	}
}
