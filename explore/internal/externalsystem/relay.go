// Package externalsystem is the way of an explored program to an external system, such as a database server: a [Relay]
// that refuses, cuts and delays connections.
//
// Example: the third part of data that passes in a step cuts all connections, and they pass again afterwards.
//
//	r, err := externalsystem.Listen("127.0.0.1:5432")
//	defer r.Close()
//	r.BeginStep()
//	injection := r.Inject(externalsystem.Cut, 3)
//	…                              // the program connects to r.Address()
//	injection.HasHappened()
package externalsystem

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// acceptPause is the pause after a connection that could not be accepted.
const acceptPause = 10 * time.Millisecond

// Relay is a TCP proxy in front of an external system. Its methods are safe for concurrent use.
type Relay struct {
	target   string
	listener net.Listener
	// stop ends the dials of the target.
	stop context.CancelFunc
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

// Listen starts a relay on the loopback address. target is the address of the external system, as host:port. The caller
// calls Close.
func Listen(target string) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Relay{target: target, listener: listener, stop: stop, open: make(map[net.Conn]net.Conn)}
	r.serving.Go(func() { r.accept(ctx) })
	return r, nil
}

// Address returns the address by which a program reaches the external system.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Close cuts all connections, and returns when nothing of the relay runs any more.
func (r *Relay) Close() {
	r.mu.Lock()
	r.isClosed = true
	r.cutLocked()
	r.mu.Unlock()
	r.stop()
	r.listener.Close()
	r.serving.Wait()
}

// BeginStep begins a step: parts of data are counted from 1 again, and what was injected ends.
func (r *Relay) BeginStep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts, r.injection = 0, nil
}

// Parts returns how many parts of data have passed in the step.
func (r *Relay) Parts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts
}

// Inject lets an effect begin at a part of data of the step, counted from 1.
func (r *Relay) Inject(e Effect, part int) *Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.injection = &Injection{relay: r, effect: e, part: part}
	return r.injection
}

// LastPart returns when the last part of data passed.
func (r *Relay) LastPart() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastPart
}

// IsDisturbing reports whether what was injected has begun and lasts.
func (r *Relay) IsDisturbing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.injection != nil && time.Now().Before(r.injection.until)
}

// accept serves connections until the listener is closed.
func (r *Relay) accept(ctx context.Context) {
	for {
		client, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the process has too many files: a pause keeps the loop from using a processor
			if clock.SleepReal(ctx, acceptPause) != nil {
				return
			}
			continue
		}
		r.serving.Go(func() { r.serve(ctx, client) })
	}
}

// serve passes on the data of a connection. The end of ctx ends the dial of the target.
func (r *Relay) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	if !r.pass() {
		return
	}
	target, err := new(net.Dialer).DialContext(ctx, "tcp", r.target)
	if err != nil {
		return
	}
	defer target.Close()
	r.mu.Lock()
	if r.isClosed {
		r.mu.Unlock()
		return
	}
	r.open[client] = target
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, client)
	}()
	var back sync.WaitGroup
	back.Go(func() { r.copy(client, target) })
	r.copy(target, client)
	back.Wait()
}

// copy passes data on until a connection ends, and closes both.
func (r *Relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !r.pass() {
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
func (r *Relay) pass() bool {
	r.mu.Lock()
	r.parts++
	r.lastPart = time.Now()
	i := r.injection
	if i == nil || r.parts < i.part {
		r.mu.Unlock()
		return true
	}
	isFirst := i.until.IsZero()
	if isFirst {
		i.until = time.Now().Add(i.effect.duration())
	}
	isOver := !isFirst && time.Now().After(i.until)
	if !isOver && (isFirst || i.effect == Refuse) && i.effect != Delay {
		r.cutLocked()
	}
	r.mu.Unlock()
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
func (r *Relay) cutLocked() {
	for client, target := range r.open {
		client.Close()
		target.Close()
	}
}
