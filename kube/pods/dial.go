package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/yare-go/yare/kube"
)

const portProtocol = "v4.channel.k8s.io"

// The channels of one port. The first message of each is the number of the port.
const (
	channelData byte = iota
	channelPortError
)

// Dial opens a connection to a port of a Pod. The connection ends when ctx ends. The caller closes it.
// Each connection is a separate request. Nothing listens on this machine. If the kubelet cannot reach
// the port, a read returns the error of the kubelet. The connection has no half-close: Close ends both
// directions. A deadline of a write that passes ends the connection. One goroutine at a time may read, and one
// may write.
func Dial(ctx context.Context, c *kube.Client, namespace, name string, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("portforward of the Pod %q: %d is no port", namespace+"/"+name, port)
	}
	socket, err := openSocket(ctx, c, namespace, name, "portforward", portProtocol,
		url.Values{"ports": {strconv.Itoa(port)}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p := &portConn{
		socket: socket, ctx: ctx, cancel: cancel, address: podAddress(fmt.Sprintf("%s/%s:%d", namespace, name, port)),
	}
	p.running.Go(func() { socket.readMessages(ctx) })
	p.running.Go(func() { socket.keepAlive(ctx, cancel) })
	return p, nil
}

// portConn is a connection to a port of a Pod. One goroutine at a time may read, and one may write.
type portConn struct {
	socket *socket
	// ctx is the context of the connection, because the methods of a net.Conn receive none.
	ctx     context.Context //nolint:containedctx // see above
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	address podAddress

	// rest is the unread part of the last message. hasDataPort and hasErrorPort are true once the number
	// of the port has come on the channel of the data and of the error.
	rest                      []byte
	hasDataPort, hasErrorPort bool

	mu                          sync.Mutex
	readDeadline, writeDeadline time.Time
}

func (p *portConn) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		ctx, cancel := p.contextUntil(&p.readDeadline)
		message, err := p.socket.next(ctx)
		cancel()
		switch {
		case websocket.CloseStatus(err) == websocket.StatusNormalClosure, errors.Is(err, io.EOF):
			return 0, io.EOF
		case err != nil && context.Cause(p.ctx) != nil:
			return 0, context.Cause(p.ctx)
		case err != nil:
			return 0, err
		case len(message) == 0:
			continue
		}
		data := message[1:]
		switch message[0] {
		case channelData:
			if p.rest = data; !p.hasDataPort && len(data) >= 2 {
				p.hasDataPort, p.rest = true, data[2:]
			}
		case channelPortError:
			if !p.hasErrorPort && len(data) >= 2 {
				p.hasErrorPort, data = true, data[2:]
			}
			if len(data) > 0 {
				return 0, fmt.Errorf("the port %s: %s", p.address, data)
			}
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *portConn) Write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		part := b[sent:min(len(b), sent+16<<10)]
		ctx, cancel := p.contextUntil(&p.writeDeadline)
		err := p.socket.write(ctx, append([]byte{channelData}, part...))
		cancel()
		if err != nil {
			return sent, err
		}
		sent += len(part)
	}
	return sent, nil
}

func (p *portConn) Close() error {
	p.cancel(net.ErrClosed)
	err := p.socket.conn.CloseNow()
	p.running.Wait()
	return err
}

// contextUntil returns the context of the connection with a deadline, unless the deadline is zero.
func (p *portConn) contextUntil(deadline *time.Time) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deadline.IsZero() {
		return context.WithCancel(p.ctx)
	}
	return context.WithDeadline(p.ctx, *deadline)
}

func (p *portConn) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

func (p *portConn) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readDeadline = t
	return nil
}

func (p *portConn) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeDeadline = t
	return nil
}

func (p *portConn) LocalAddr() net.Addr  { return podAddress("local") }
func (p *portConn) RemoteAddr() net.Addr { return p.address }

// podAddress is the address of a port of a Pod.
type podAddress string

func (podAddress) Network() string  { return "pod" }
func (a podAddress) String() string { return string(a) }
