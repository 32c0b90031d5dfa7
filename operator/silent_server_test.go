package operator_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// silentServer accepts connections and never answers.
type silentServer struct {
	net.Listener
	mu    sync.Mutex
	calls int
}

// newSilentServer starts a silentServer. It ends after t.
func newSilentServer(t *testing.T) *silentServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &silentServer{Listener: listener}
	var accepting sync.WaitGroup
	accepting.Go(s.accept)
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		accepting.Wait()
	})
	return s
}

func (s *silentServer) accept() {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close() // nothing was sent
		}
	}()
	for {
		c, err := s.Accept()
		if err != nil {
			return
		}
		conns = append(conns, c)
		s.mu.Lock()
		s.calls++
		s.mu.Unlock()
	}
}

// waitForCalls waits until there were n connections.
func (s *silentServer) waitForCalls(t *testing.T, n int) {
	t.Helper()
	yaretest.Eventually(yaretest.Within(t, 2*time.Minute), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls < n {
			return fmt.Errorf("%d calls of the webhook, not %d", s.calls, n)
		}
		return nil
	})
}
