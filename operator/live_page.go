package operator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/livepage"
)

// livePageSocketVariable is the variable by which yare dev has a program serve its live page on a Unix socket, to which
// yare dev passes on the requests of a browser.
const livePageSocketVariable = "YARE_LIVE_PAGE_SOCKET"

// livePagePath is the path of the live page. All other paths of the page are below it.
const livePagePath = livepage.Path

// LivePage returns a part that adds the flag --live-page. With this flag, the program serves at /live-page what it does and
// why: the last reconciles with their causes, what their writes have changed, the story of each object, and the state of the
// program. In yare dev the page is there without the flag. Otherwise the part does nothing without the flag.
//
//	operator.Main(controller.New(reconcile), operator.SecureListener(), operator.LivePage())
//
// The page shows the contents of objects, but never those of Secrets. So the flag needs --listen-secure, or --listen with an
// address of the loopback interface. With --listen-secure, a reader needs the permission to get /live-page and the paths below,
// as nonResourceURLs. A browser asks for a password, which is a token of the cluster.
//
// The page keeps some thousand reconciles, in at most one megabyte. docs/guide/live-page.md describes the page.
func LivePage() Part { return livePage{} }

// livePage is the part of [LivePage].
type livePage struct{ linkedLivePageCode }

// Needs returns the needs of a service, which does not keep a program running.
func (livePage) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program serves the page before it starts its parts.
func (livePage) Start(context.Context, *controller.Runtime) error { return nil }

// servedLivePage is a live page that is served.
type servedLivePage struct {
	livePageSettings
	// listener is the socket of yare dev. It may be nil.
	listener net.Listener

	recorder *livepage.Recorder
	// page and server are nil before start. server is nil without a listener.
	page    *livepage.Page
	server  *server
	isEnded bool
}

func (p *servedLivePage) wrapObserver(next controller.Observer) controller.Observer {
	p.recorder = livepage.NewRecorder(next)
	return p.recorder
}

func (p *servedLivePage) start(rt livePageRuntime, pages *pages) error {
	p.page = livepage.NewPage(p.recorder, livepage.Sources{
		Program: p.program, Versions: versions(), Streams: rt.cache.Stats, UncachedStreams: rt.uncached,
		Cached: rt.cache.Handler(wire.HandlerFunc(refuseUncached)), Reconciled: rt.reconciled,
		Leadership: rt.leadership, UnreadyReasons: rt.unreadyReasons, CertificateEnds: rt.certificateEnds, Memory: memoryOfProcess,
	})
	var handler http.Handler = p.page
	if p.isLoopback {
		handler = onlyForLoopback(handler)
	}
	if p.isOn {
		for _, pattern := range []string{"GET " + livePagePath, "GET " + livePagePath + "/"} {
			if err := pages.addPage(pattern, handler); err != nil {
				return err
			}
		}
		p.log.Info("serving the live page", "path", livePagePath)
	}
	if p.listener != nil {
		p.server = serve(p.listener, handler, p.log, rt.fail)
	}
	return nil
}

func (p *servedLivePage) end() {
	if p.isEnded {
		return
	}
	p.isEnded = true
	if p.page != nil {
		p.page.Close()
	}
	switch {
	case p.server != nil:
		p.server.close()
	case p.listener != nil:
		_ = p.listener.Close() // it has no requests yet
	}
}

// memoryOfProcess returns the memory of the process.
func memoryOfProcess() livepage.Memory {
	resident, _ := residentBytes() // it is not known on every system
	return livepage.Memory{
		Resident: resident, Heap: runtimeMetric("/memory/classes/heap/objects:bytes"), Limit: runtimeMetric("/gc/gomemlimit:bytes"),
		Goroutines: runtime.NumGoroutine(),
	}
}

var errUncached = errors.New("the cache does not answer this read")

// refuseUncached refuses what the cache does not answer. So the page sends no request.
func refuseUncached(context.Context, *wire.Request) (*wire.Response, error) { return nil, errUncached }

// onlyForLoopback returns a handler that refuses a request for another host than this machine. A web site could otherwise
// name this machine by a name of its own (DNS rebinding), and have a browser read the page.
func onlyForLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			http.Error(w, "open the page as localhost or 127.0.0.1", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost reports whether an address, such as localhost:8080, names the loopback interface.
func isLoopbackHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
