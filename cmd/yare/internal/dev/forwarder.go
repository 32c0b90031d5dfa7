package dev

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// maxSocketPath is the longest path of a Unix socket, in bytes. The kernel of macOS allows 103, and that of Linux 107.
const maxSocketPath = 100

// forwarder takes requests on the loopback interface, and forwards them to the process of the operator, by a Unix
// socket. The address stays the same while the process changes.
type forwarder struct {
	// address is the address that takes requests, and socket is the path of the socket.
	address, socket string
	listener        net.Listener
	server          *http.Server
	serving         sync.WaitGroup
}

// newForwarder returns a forwarder that listens, and serves nothing yet.
func newForwarder(socket string) (*forwarder, error) {
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket %s has more than %d bytes: set TMPDIR to a folder with a shorter path",
			socket, maxSocketPath)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &forwarder{address: listener.Addr().String(), socket: socket, listener: listener}, nil
}

// start begins to serve. Requests pass the handler that guard returns, and then the transport. answerFailure answers a
// request that could not be forwarded. settings may be nil for HTTP without TLS.
func (f *forwarder) start(
	guard func(http.Handler) http.Handler, transport *http.Transport,
	answerFailure func(http.ResponseWriter, *http.Request, error), settings *tls.Config,
) {
	silent := log.New(io.Discard, "", 0)
	transport.DisableCompression = true
	listener := f.listener
	if settings != nil {
		listener = tls.NewListener(listener, settings)
	}
	f.server = &http.Server{
		Handler: guard(&httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host },
			Transport:    transport,
			ErrorHandler: answerFailure,
			ErrorLog:     silent,
		}),
		ReadHeaderTimeout: 10 * time.Second,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2
		ErrorLog:          silent,
	}
	f.serving.Go(func() { _ = f.server.Serve(listener) })
}

// dial connects to the operator.
func (f *forwarder) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", f.socket)
}

// close ends the forwarding.
func (f *forwarder) close() {
	_ = f.server.Close()
	f.serving.Wait()
}
