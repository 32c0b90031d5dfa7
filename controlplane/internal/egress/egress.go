// Package egress keeps the API server of a control plane without a real node from dialing into the network of the
// machine. The addresses of Services and simulated Pods are made up, and may belong to somebody else there. A proxy
// passes the connections of the API server to loopback addresses on, and refuses all others.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// dialTimeout bounds the dial to a loopback address, which accepts or refuses at once.
	dialTimeout = 10 * time.Second
	// refusal is the reason that the API server puts into its error.
	refusal = "without a real node the API server of yare dials loopback addresses only, " +
		"and no Service, Pod or ExternalName: give a webhook or a conversion a url with 127.0.0.1 in place of its service"
)

// Configuration returns the EgressSelectorConfiguration by which the API server dials what belongs to the cluster
// through the proxy at socket: webhooks, conversions, aggregated API servers, kubelets, and the subresources proxy.
func Configuration(socket string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`, socket)
}

// Proxy is a proxy for CONNECT requests to loopback addresses.
type Proxy struct {
	listener net.Listener
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// Start starts a proxy at a Unix socket. It replaces a socket that is left there.
func Start(socket string) (*Proxy, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of the egress proxy: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen at the socket of the egress proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{listener: listener, cancel: cancel}
	p.running.Go(func() { p.serve(ctx) })
	return p, nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.running.Wait()
}

func (p *Proxy) serve(ctx context.Context) {
	for {
		conn, err := p.listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // no file descriptor is left
			time.Sleep(10 * time.Millisecond)
		default:
			p.running.Go(func() { handle(ctx, conn.(*net.UnixConn)) })
		}
	}
}

// handle serves one connection of the API server.
func handle(ctx context.Context, incoming *net.UnixConn) {
	defer incoming.Close()
	defer context.AfterFunc(ctx, func() { _ = incoming.Close() })()
	reader := bufio.NewReader(incoming)
	request, err := http.ReadRequest(reader)
	if err != nil || request.Method != http.MethodConnect {
		respond(incoming, http.StatusBadRequest, "the request is no CONNECT")
		return
	}
	address, err := loopbackAddress(request.URL.Host)
	if err != nil {
		respond(incoming, http.StatusForbidden, err.Error())
		return
	}
	outgoing, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		respond(incoming, http.StatusBadGateway, err.Error())
		return
	}
	defer outgoing.Close()
	defer context.AfterFunc(ctx, func() { _ = outgoing.Close() })()
	respond(incoming, http.StatusOK, "OK")
	if n := reader.Buffered(); n > 0 { // the API server waits for the response, so this is nothing today
		first, _ := reader.Peek(n)
		if _, err := outgoing.Write(first); err != nil {
			return
		}
	}
	var copying sync.WaitGroup
	copying.Go(func() { copyHalf(outgoing.(*net.TCPConn), incoming) })
	copyHalf(incoming, outgoing.(*net.TCPConn))
	copying.Wait()
}

// respond writes a response without a body. The API server shows the reason in its error.
func respond(conn net.Conn, code int, reason string) {
	reason = strings.Join(strings.Fields(reason), " ")
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n\r\n", code, reason) // a peer that is gone needs no response
}

// loopbackAddress returns hostport if it is an address of this machine alone, and otherwise an error. It looks up no
// name, because a look-up is a request to the network.
func loopbackAddress(hostport string) (string, error) {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return "", err
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return hostport, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return hostport, nil
	}
	return "", errors.New(refusal)
}

// halfConn is a connection with two directions that end one by one.
type halfConn interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
}

// copyHalf copies one direction and passes its end on.
func copyHalf(to, from halfConn) {
	_, err := io.Copy(to, from)
	_ = to.CloseWrite()
	if err != nil {
		_ = from.CloseRead()
	}
}
