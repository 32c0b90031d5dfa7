//go:build linux

// Package relay makes the API server, which listens on the loopback address of the machine,
// reachable for the node.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Relay forwards TCP connections that come in over one link.
type Relay struct {
	listener net.Listener
	running  sync.WaitGroup
	end      context.CancelFunc
}

// Start listens on an address of a link, and forwards each connection to target. Connections that
// arrive over other links are refused, so the machine's own network does not reach the target.
func Start(address netip.AddrPort, link, target string) (*Relay, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var bindErr error
		err := raw.Control(func(fd uintptr) { bindErr = unix.BindToDevice(int(fd), link) })
		return errors.Join(err, bindErr)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := config.Listen(ctx, "tcp4", address.String())
	if err != nil {
		cancel()
		return nil, fmt.Errorf("listen on the link %s: %w", link, err)
	}
	r := &Relay{listener: listener, end: cancel}
	r.running.Go(func() { r.accept(ctx, target) })
	return r, nil
}

// Address returns the address that the relay listens on.
func (r *Relay) Address() net.Addr { return r.listener.Addr() }

// acceptDelay is the pause after a connection that could not be accepted.
const acceptDelay = 10 * time.Millisecond

func (r *Relay) accept(ctx context.Context, target string) {
	for {
		incoming, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the client has given up, or the process has too many files
			time.Sleep(acceptDelay)
			continue
		}
		r.running.Go(func() { forward(ctx, incoming, target) })
	}
}

// forward copies in both directions until both ends are done or ctx ends.
func forward(ctx context.Context, incoming net.Conn, target string) {
	defer incoming.Close()
	outgoing, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return // the API server is away: the client sees the end of its connection
	}
	defer outgoing.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = incoming.Close()
		_ = outgoing.Close()
	})
	defer stop()
	var copying sync.WaitGroup
	copying.Go(func() { copyHalf(outgoing, incoming) })
	copying.Go(func() { copyHalf(incoming, outgoing) })
	copying.Wait()
}

// copyHalf copies one direction, and passes on its end.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// Close ends all connections and waits for their end.
func (r *Relay) Close() {
	r.end()
	_ = r.listener.Close()
	r.running.Wait()
}
