package outside

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Proxy is a TCP proxy in front of an external system. Its methods are safe for concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	// serving counts the goroutines of connections, and the one that accepts connections.
	serving sync.WaitGroup

	mu       sync.Mutex
	isClosed bool
	// open are the connections of the program, each with the connection to the target.
	open map[net.Conn]net.Conn
	// parts counts the parts of data that have passed in the step, in both directions, and new connections.
	parts int
	// injection is what happens in the step, or nil.
	injection *Injection
	lastPart  time.Time
}

// Listen starts a proxy on the loopback address. target is the address of the external system, as host:port. The caller calls
// Close.
func Listen(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: listener, open: make(map[net.Conn]net.Conn)}
	p.serving.Go(p.accept)
	return p, nil
}

// Address returns the address by which a program reaches the external system.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close cuts all connections, and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.isClosed = true
	p.cutLocked()
	p.mu.Unlock()
	p.listener.Close()
	p.serving.Wait()
}

// BeginStep begins a step: parts of data are counted from 1 again, and what was injected ends.
func (p *Proxy) BeginStep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts, p.injection = 0, nil
}

// Parts returns how many parts of data have passed in the step.
func (p *Proxy) Parts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parts
}

// Inject lets something happen in the step when so many parts of data have passed.
func (p *Proxy) Inject(e Effect, parts int) *Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injection = &Injection{of: p, effect: e, parts: parts}
	return p.injection
}

// LastPart returns when the last part of data passed.
func (p *Proxy) LastPart() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastPart
}

// IsDisturbing reports whether what was injected has begun and lasts.
func (p *Proxy) IsDisturbing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.injection != nil && time.Now().Before(p.injection.until)
}

// accept serves connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.serving.Go(func() { p.serve(client) })
	}
}

// serve passes on the data of a connection.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.pass() {
		return
	}
	target, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer target.Close()
	p.mu.Lock()
	if p.isClosed {
		p.mu.Unlock()
		return
	}
	p.open[client] = target
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, client)
	}()
	var back sync.WaitGroup
	back.Go(func() { p.copy(client, target) })
	p.copy(target, client)
	back.Wait()
}

// copy passes data on until a connection ends, and closes both.
func (p *Proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.pass() {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass counts a part of data or a connection. It waits while data is delayed, and reports whether the part may pass.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	p.parts++
	p.lastPart = time.Now()
	i := p.injection
	if i == nil || p.parts < i.parts {
		p.mu.Unlock()
		return true
	}
	isFirst := i.until.IsZero()
	if isFirst {
		i.until = time.Now().Add(i.effect.duration())
	}
	isOver := !isFirst && time.Now().After(i.until)
	if !isOver && (isFirst || i.effect == Refuse) && i.effect != Delay {
		p.cutLocked()
	}
	p.mu.Unlock()
	switch {
	case isOver:
		return true
	case i.effect == Delay:
		time.Sleep(partDelay)
		return true
	case i.effect == Cut:
		return !isFirst
	}
	return false
}

// cutLocked closes all open connections.
func (p *Proxy) cutLocked() {
	for client, target := range p.open {
		client.Close()
		target.Close()
	}
}
