package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
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
type livePage struct{}

// Needs returns the needs of a service, which does not keep a program running.
func (livePage) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program serves the page before it starts its parts.
func (livePage) Start(context.Context, *controller.Runtime) error { return nil }

// livePageOpener opens the live page. A program finds its [livePage] by this interface alone. So the linker leaves the
// page out of a program without the part.
type livePageOpener interface {
	openLivePage(ctx context.Context, s livePageSettings) (livePageService, error)
}

// livePageService is the live page of a program.
type livePageService interface {
	// observer returns the observer of the controllers. It passes what it receives to next, which may be nil.
	observer(next controller.Observer) controller.Observer
	// start begins to serve by rt, and adds the page to pages if the flag is given. It is called after observer.
	start(rt livePageRuntime, pages *pages) error
	// end ends the page. It may be called again.
	end()
}

// livePageSettings are what is known of the page before the client of the program is there.
type livePageSettings struct {
	// isOn is true if the flag is given.
	isOn bool
	// socket is the path of the socket of yare dev, or empty.
	socket string
	// isLoopback is true if the pages of the program are served on loopback only, without a check of the reader.
	isLoopback bool
	program    string
	log        *slog.Logger
}

// livePageRuntime is what a program lends to its page while it runs.
type livePageRuntime struct {
	cache      *cache.Cache
	uncached   func() []follow.StreamState
	reconciled []wire.Resource
	// leadership returns whether the replica leads, in words. It is empty without leader election.
	leadership func() string
	// unreadyReasons returns why the program is not ready.
	unreadyReasons func() []string
	// pagesEnd returns when the certificate of the pages ends. It is nil without a certificate.
	pagesEnd func() (time.Time, error)
	webhooks webhookService
	// fail ends the program with an error.
	fail func(error)
}

// openLivePageOf opens the live page of parts, if the flag or yare dev asks for the page. It returns nil otherwise.
func openLivePageOf(ctx context.Context, parts []Part, s livePageSettings) (livePageService, error) {
	opener, err := livePageOpenerIn(parts)
	switch {
	case err != nil && s.isOn:
		return nil, err
	case err != nil || !s.isOn && s.socket == "":
		return nil, nil //nolint:nilnil // there is no page
	}
	return opener.openLivePage(ctx, s)
}

// livePageOpenerIn returns the part of [LivePage], or an error if there is none.
func livePageOpenerIn(parts []Part) (livePageOpener, error) {
	for _, part := range parts {
		if opener, ok := part.(livePageOpener); ok {
			return opener, nil
		}
	}
	return nil, errors.New("the program has no live page: add operator.LivePage() to its parts, or leave out --live-page")
}

// openLivePage opens the socket of yare dev, if there is one.
func (livePage) openLivePage(ctx context.Context, s livePageSettings) (livePageService, error) {
	p := &servedLivePage{livePageSettings: s}
	if s.socket == "" {
		return p, nil
	}
	_ = os.Remove(s.socket) // a process that was killed leaves it
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", s.socket)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket that %s names: %w", livePageSocketVariable, err)
	}
	p.listener = listener
	return p, nil
}

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

func (p *servedLivePage) observer(next controller.Observer) controller.Observer {
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
			if err := pages.handle(pattern, handler); err != nil {
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

// certificateEnds returns when the certificates of the program end, by what they are for.
func (rt livePageRuntime) certificateEnds() map[string]time.Time {
	ends := make(map[string]time.Time)
	maps.Copy(ends, rt.webhooks.certificateEnds())
	if rt.pagesEnd != nil {
		if end, err := rt.pagesEnd(); err == nil {
			ends["the pages"] = end
		}
	}
	return ends
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
