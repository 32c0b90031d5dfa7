package faults

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/yare-go/yare/kube"
)

// Session is the connection of one life of a program. It has a token of its own.
type Session struct {
	proxy *Proxy
	name  string
	token string

	// The following fields are guarded by proxy.mu. open holds the function that ends each open exchange.
	cutOff bool
	open   map[*exchange]context.CancelFunc
	// isolation is the part of the session that the proxy keeps back. reconnected is closed when the isolation
	// ends, and nil without an isolation.
	isolation   isolation
	reconnected chan struct{}
}

// Session returns a new session. The name stands in [Request.Session].
func (p *Proxy) Session(name string) (*Session, error) {
	s := &Session{proxy: p, name: name, token: rand.Text(), open: map[*exchange]context.CancelFunc{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the proxy is closed")
	}
	p.sessions[s.token] = s
	return s, nil
}

// Config returns the configuration of a client in this process.
func (s *Session) Config() *kube.Config {
	return &kube.Config{Host: s.proxy.address, CAData: s.proxy.ca, BearerToken: s.token}
}

// Kubeconfig returns the content of a kubeconfig file with the namespace of the run.
func (s *Session) Kubeconfig() []byte {
	type object = map[string]any
	content, err := kube.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "run",
		"clusters": []any{object{"name": "proxy", "cluster": object{"server": s.proxy.address, "certificate-authority-data": s.proxy.ca}}},
		"users":    []any{object{"name": "program", "user": object{"token": s.token}}},
		"contexts": []any{object{"name": "run", "context": object{"cluster": "proxy", "user": "program", "namespace": s.proxy.options.Namespace}}},
	})
	if err != nil {
		panic(err) // it is plain data
	}
	return content
}

// CutOff breaks all connections of the session for good. Later requests of the session get no
// answer. The server may still carry out a write that it has received.
func (s *Session) CutOff() {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.cutOffLocked()
}

func (s *Session) cutOffLocked() {
	s.cutOff = true
	for _, cancel := range s.open {
		cancel()
	}
}
