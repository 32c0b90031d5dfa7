package operator

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// Run runs parts with a client until all have ended, one fails, or ctx ends. It returns when
// all parts have ended, the services after the other parts: see [Service]. Run is [Main] without
// flags and signals, for tests and for programs that have their own.
//
// Run logs to [slog.Default]. The error joins the errors of all parts. The end of ctx is no
// error.
func Run(ctx context.Context, c *kube.Client, parts ...Part) error {
	log := logctx.ProgramLogger(ctx)
	if log == nil {
		log = slog.Default()
	}
	return run(ctx, c, environment{log: withoutScopes(log), isChecked: access.IsChecked(ctx)}, parts)
}

// environment is what a program has besides its parts and its client.
type environment struct {
	log *slog.Logger
	// listener takes requests to the program. The program closes it. Without a listener nothing is
	// counted.
	listener net.Listener
	// guard checks the requests to the program, except those for its health. It may be nil.
	guard guard
	// connection is the reporter of the connection of the client. It may be nil.
	connection *connectionReporter
	// handlers and metrics are the fields of [Program]. They may be nil.
	handlers func(*controller.Runtime) map[string]http.Handler
	metrics  func(io.Writer)
	// tracer is the Tracer of the [Program]. It may be nil.
	tracer kube.Tracer
	// namespace and pod are the fields of [controller.Runtime].
	namespace, pod string
	// isChecked is true if the program refuses requests that its parts do not declare.
	isChecked bool
	// election is the leader election of the program. It may be nil.
	election *leaderElection
}

// run runs parts as Run does, in env.
//
// The end comes in this order: the program reports that it is not ready, and takes no new
// work; the parts finish what is under way, each within its grace; the services end; then
// the listener, which answers until here; then the streams.
func run(ctx context.Context, c *kube.Client, env environment, parts []Part) error {
	serving := false
	defer func() {
		if env.listener != nil && !serving {
			_ = env.listener.Close() // it has no requests yet
		}
	}()
	needs, err := needsOf(parts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c = c.With(kube.Trace(env.tracer))
	var f *figures
	if env.listener != nil {
		f = newFigures()
		c = c.With(f.countRequests)
	}
	if env.isChecked {
		c = c.With(refuseUndeclared(access.NewChecker(needs, c.Namespaces(), env.namespace)))
	}
	streams := newStreamReporter(env.log, env.connection)
	caches := cache.New(c, cache.OnError(streams.recordError), cache.OnRecovered(streams.recordRecovery))
	defer caches.Close()
	rt := &controller.Runtime{Client: c, Cache: caches, Log: env.log, Tracer: env.tracer, Namespace: env.namespace, Pod: env.pod}
	if env.election != nil {
		rt.Elected = env.election.elector.Elected()
	}
	pages, err := env.newPages(rt)
	if err != nil {
		return err
	}
	tracker := watch.NewSyncTracker()
	group := partGroup{runtime: rt, tracker: tracker, stop: cancel}
	if env.listener != nil {
		rt.Observer = f
		f.collectStreams(caches.Stats)
		f.elected = rt.Elected
		pages.figures = f
		pages.ready = &readiness{
			controllers: needs.Names, isSubscribed: f.isSubscribed,
			cached: caches.Stats, unsynced: tracker.Unsynced,
			isEnding: func() bool { return ctx.Err() != nil },
			election: env.election,
		}
		var handler http.Handler = pages.mux
		if env.guard != nil {
			handler = env.guard(handler)
		}
		s := serve(env.listener, handler, env.log, group.fail)
		serving = true
		defer s.close()
	}
	return group.run(ctx, parts)
}
