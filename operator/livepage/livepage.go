// Package livepage is a page for a browser, which shows what a program does and why: the last reconciles with their
// causes, what their writes have changed, the story of each object, and the state of the program.
//
//	operator.Main(controller.New(reconcile), secure.New(), livepage.New())
//
// docs/guide/live-page.md describes the page.
package livepage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/livepage/internal/page"
)

// New returns a part that adds the flag --live-page. With this flag the program serves the page at /live-page. In yare
// dev the page is there without the flag. Otherwise the part does nothing without the flag.
//
// The page shows the contents of objects, but never those of Secrets. So the flag needs --listen-secure, or --listen
// with an address of the loopback interface. With --listen-secure, a reader needs the permission to get /live-page and
// the paths below, as nonResourceURLs. A browser asks for a password, which is a token of the cluster.
//
// The page keeps some thousand reconciles, in at most one megabyte.
func New() operator.Part { return part{} }

// part is the part of [New].
type part struct{}

// Needs returns the needs of a service, which does not keep a program running.
func (part) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program starts the feature before its parts.
func (part) Start(context.Context, *controller.Runtime) error { return nil }

// FeatureName returns the name of the feature: see [feature.Bringer].
func (part) FeatureName() string { return "operator/livepage" }

// NewFeature returns the live page: see [feature.Bringer].
func (part) NewFeature() feature.Feature { return new(livePage) }

// socketVariable is the variable by which yare dev has a program serve its page on a Unix socket, to which yare dev
// passes on the requests of a browser.
const socketVariable = "YARE_LIVE_PAGE_SOCKET"

// livePage is the live page of a program.
type livePage struct {
	program *feature.Program
	// isOn is true if the flag is given.
	isOn bool
	// recorder is nil if nobody asks for the page.
	recorder *page.Recorder
	// stopClosing keeps the end of the context from closing the page. It is nil before the page is served.
	stopClosing func() bool
	page        *page.Page
}

// Declare returns the flag --live-page: see [feature.Feature].
func (p *livePage) Declare(program *feature.Program) (feature.Declaration, error) {
	p.program = program
	return feature.Declaration{
		Flags: []feature.Flag{{
			Name: "live-page", Set: feature.SetBool(&p.isOn),
			Help: "serve /live-page there, which shows what the program does and why. It shows the contents of objects, " +
				"so it needs --listen-secure, or --listen on a loopback address",
		}},
		Check: p.check,
	}, nil
}

// check returns an error if everybody could read the page.
func (p *livePage) check() ([]kube.Access, error) {
	pages := &p.program.Pages
	if !p.isOn {
		return nil, nil
	}
	pages.BrowserPaths = append(pages.BrowserPaths, page.Path)
	if !pages.IsChecked && !isLoopbackHost(pages.Address) && (pages.Address != "" || p.program.Command == "run") {
		return nil, errors.New("--live-page shows the contents of objects: give it --listen-secure, such as :8443, " +
			"or --listen with a loopback address, such as 127.0.0.1:8080")
	}
	return nil, nil
}

// Install returns an error if everybody could read the page in a cluster.
func (p *livePage) Install(*feature.Plan) error {
	if p.isOn && !p.program.Pages.IsChecked {
		return errors.New("--live-page in a cluster needs --listen-secure: give it an address, such as :8443")
	}
	return nil
}

// socket returns the path of the socket of yare dev, or an empty text.
func (p *livePage) socket() string {
	if !p.program.IsDevelopment {
		return ""
	}
	return os.Getenv(socketVariable)
}

// Observe returns an observer that records the reconciles for the page, if the flag or yare dev asks for the page.
func (p *livePage) Observe(next controller.Observer) controller.Observer {
	if !p.isOn && p.socket() == "" {
		return next
	}
	p.recorder = page.NewRecorder(next)
	return p.recorder
}

// Start adds the page to those of the program if the flag is given, and serves it at the socket of yare dev, if there
// is one.
func (p *livePage) Start(ctx context.Context, h *feature.Host) error {
	if p.recorder == nil {
		return nil
	}
	p.page = page.NewPage(p.recorder, page.Sources{
		Program: p.program.Name, Versions: p.program.Version, Streams: h.Runtime.Cache.Stats, UncachedStreams: h.UncachedStreams,
		Cached: h.Runtime.Cache.Handler(wire.HandlerFunc(refuseUncached)), Reconciled: p.program.Needs.Reconciles,
		Leadership: h.Leadership, UnreadyReasons: h.UnreadyReasons, CertificateEnds: h.CertificateEnds, Memory: memory,
	})
	p.stopClosing = context.AfterFunc(ctx, p.page.Close)
	var handler http.Handler = p.page
	if !p.program.Pages.IsChecked {
		handler = onlyForLoopback(handler)
	}
	if p.isOn {
		for _, pattern := range []string{"GET " + page.Path, "GET " + page.Path + "/"} {
			if err := h.AddPage(pattern, handler); err != nil {
				return err
			}
		}
		h.Runtime.Log.Info("serving the live page", "path", page.Path)
	}
	return p.serveSocket(ctx, h, handler)
}

// serveSocket serves handler at the socket of yare dev, if there is one.
func (p *livePage) serveSocket(ctx context.Context, h *feature.Host, handler http.Handler) error {
	path := p.socket()
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // a process that was killed leaves it
		h.Runtime.Log.Debug("the socket of an earlier process cannot be removed", "error", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listen on the socket that %s names: %w", socketVariable, err)
	}
	h.Serve(listener, func(http.Handler) http.Handler { return handler })
	return nil
}

// UnreadyReasons returns nothing: a program without its page does its work.
func (*livePage) UnreadyReasons() []string { return nil }

// End closes the page.
func (p *livePage) End() {
	if p.page != nil {
		p.stopClosing()
		p.page.Close()
	}
}

// memory returns the memory of the process.
func memory() page.Memory {
	resident, _ := metrics.ResidentBytes() // it is not known on every system
	return page.Memory{
		Resident: resident, Heap: metrics.RuntimeMetric("/memory/classes/heap/objects:bytes"),
		Limit: metrics.RuntimeMetric("/gc/gomemlimit:bytes"), Goroutines: runtime.NumGoroutine(),
	}
}

var errUncached = errors.New("the cache does not answer this read")

// refuseUncached refuses what the cache does not answer. So the page sends no request.
func refuseUncached(context.Context, *wire.Request) (*wire.Response, error) { return nil, errUncached }

// onlyForLoopback returns a handler that refuses a request for another host than this machine. A web site could
// otherwise name this machine by a name of its own (DNS rebinding), and have a browser read the page.
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
