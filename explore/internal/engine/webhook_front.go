package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"sync"

	"github.com/yare-go/yare/internal/proxy/loopback"
)

// webhookFront takes the calls of the API server to the webhooks and conversions of a compiled program, and forwards
// them to a process of the program, by a Unix socket. Its address stays the same for all processes of an exploration.
// With an address of its own, each new process would change the conversions of its CustomResourceDefinitions, and the
// API server would end all watches of these kinds. A call is cut off while no process listens. Its methods are safe for
// concurrent use.
type webhookFront struct {
	server *loopback.Server
	proxy  *httputil.ReverseProxy

	mu sync.Mutex
	// sockets are the paths of the sockets of the newest processes, the newest last.
	sockets []string
}

// maxWebhookSockets is more than a program has processes at a time.
const maxWebhookSockets = 8

// newWebhookFront starts a front. The caller calls close.
func newWebhookFront() (*webhookFront, error) {
	f := &webhookFront{}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "program" },
		// A connection serves one call. So no call meets a connection of a process that has ended.
		Transport:    &http.Transport{DisableKeepAlives: true, DialContext: f.dial},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // it cuts the call off
	}
	var err error
	f.server, err = loopback.Start(f.proxy)
	return f, err
}

// close cuts all calls off, and ends the front. f may be nil.
func (f *webhookFront) close() {
	if f != nil {
		f.server.Close()
	}
}

// addProcess lets the front forward calls to a new process, and returns the variables by which a program of yare learns
// of the front. path is the beginning of the paths of the files of the process. f may be nil: then there are no
// variables.
func (f *webhookFront) addProcess(path string) ([]string, error) {
	if f == nil {
		return nil, nil
	}
	config, socket, authority := f.server.Config(""), path+".webhooks", path+".webhooks-ca"
	if err := os.WriteFile(authority, config.CAData, 0o600); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sockets = append(f.sockets, socket)
	f.sockets = slices.Delete(f.sockets, 0, max(0, len(f.sockets)-maxWebhookSockets))
	return []string{
		"YARE_WEBHOOKS_URL=" + config.Host, "YARE_WEBHOOKS_CA=" + authority, "YARE_WEBHOOKS_SOCKET=" + socket,
	}, nil
}

// dial connects to the newest process that listens.
func (f *webhookFront) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f.mu.Lock()
	sockets := slices.Clone(f.sockets)
	f.mu.Unlock()
	for _, socket := range slices.Backward(sockets) {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", socket); err == nil {
			return conn, nil
		}
	}
	return nil, errors.New("no process of the program takes calls")
}
