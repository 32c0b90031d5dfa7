package proxy

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
)

// Session is the connection of one process of a program. It has a token of its own. Its methods are safe for
// concurrent use.
type Session struct {
	name, token, namespace string
	server                 *loopback.Server

	mu sync.Mutex
	// isCutOff is true once the session is cut off.
	isCutOff bool
	// open holds, for each exchange that is not over, the function to break the exchange.
	open map[*Exchange]context.CancelFunc
}

func newSession(name, namespace string, server *loopback.Server) *Session {
	return &Session{
		name: name, token: rand.Text(), namespace: namespace, server: server, open: map[*Exchange]context.CancelFunc{},
	}
}

// Name returns the name that stands in [RequestRecord.Session].
func (s *Session) Name() string { return s.name }

// Config returns the configuration of a client in this process.
func (s *Session) Config() *kube.Config { return s.server.Config(s.token) }

// Kubeconfig returns the content of a kubeconfig file with the namespace of [Options].
func (s *Session) Kubeconfig() []byte { return s.server.Kubeconfig(s.token, s.namespace) }

// CutOff breaks all connections of the session for good. Later requests of the session get no
// answer. The server may still carry out a write that it has received.
func (s *Session) CutOff() {
	s.mu.Lock()
	s.isCutOff = true
	s.mu.Unlock()
	s.Break()
}

// Break breaks all requests under way. Later requests are served.
func (s *Session) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.open {
		cancel()
	}
}

// begin adds an exchange that cancel breaks. It reports false if the session is cut off.
func (s *Session) begin(x *Exchange, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isCutOff {
		return false
	}
	s.open[x] = cancel
	return true
}

// end removes an exchange that is over.
func (s *Session) end(x *Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, x)
}
