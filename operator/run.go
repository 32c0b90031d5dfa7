package operator

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/metrics"
)

// Run runs parts with a client until all have ended, one fails, or ctx ends. It returns when
// all parts have ended, the services after the other parts: see [kube.Needs]. Run is [Main] without
// flags and signals, for tests and for programs that have their own.
//
// Run logs to [slog.Default]. The error joins the errors of all parts. The end of ctx is no
// error.
func Run(ctx context.Context, c *kube.Client, parts ...Part) error {
	log := logctx.ProgramLogger(ctx)
	if log == nil {
		log = slog.Default()
	}
	env := environment{log: withoutScopes(log), unfencedClient: c}
	var isTest bool
	var test webhookTest
	if env.namespace, isTest = access.FromContext(ctx); isTest {
		env.mode, test = testMode, &webhookProbe{}
	}
	var err error
	env.webhooks, err = openWebhooksOf(ctx, parts, webhookSettings{
		program: c.FieldManager(), namespace: env.namespace, watched: c.Namespaces(), mode: env.mode, test: test, log: env.log,
	})
	if err != nil {
		return err
	}
	defer env.webhooks.end()
	return runParts(ctx, c, env, parts)
}

// environment is what a program has besides its parts and its client.
type environment struct {
	log *slog.Logger
	// listeners take requests to the program. Who opens the listeners closes them. The program serves them only while it
	// runs. Without a listener nothing is counted.
	listeners listeners
	// problems reports the problems of requests. It may be nil.
	problems *problemReporter
	// handlers and metrics are the fields of [Program]. They may be nil.
	handlers func(*controller.Runtime) map[string]http.Handler
	metrics  func(io.Writer)
	// tracer is the Tracer of the [Program]. It may be nil.
	tracer wire.Tracer
	// namespace and pod are the fields of [controller.Runtime].
	namespace, pod string
	mode           mode
	// election is the leader election of the program. It may be nil.
	election *leaderElection
	// livePage is the live page of the program. It may be nil.
	livePage livePageService
	// webhooks are what the program serves for API servers. It may be nil.
	webhooks webhookService
	// unfencedClient does not pass the fence of the election. It is nil in a program without webhooks.
	unfencedClient *kube.Client
}

// elected returns the field Elected of [controller.Runtime].
func (env environment) elected() <-chan struct{} {
	if env.election == nil {
		return nil
	}
	return env.election.elector.Elected()
}

// termVersion returns the argument of [cache.TermVersion].
func (env environment) termVersion() string {
	if env.election == nil {
		return ""
	}
	return env.election.elector.TermVersion()
}

// runParts runs parts as Run does, in env.
//
// The end comes in this order: the program reports that it is not ready, and takes no new
// work; the parts finish what is under way, each within its grace; the services end; then
// the listener, which answers until here; then the streams. The caller then releases the lease, and ends the webhooks.
func runParts(ctx context.Context, c *kube.Client, env environment, parts []Part) error {
	needs, err := needsOf(parts)
	if err != nil {
		return err
	}
	if env.webhooks == nil {
		env.webhooks = unservedWebhooks{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var m *programMetrics
	var requests *requestMetrics
	if !env.listeners.isEmpty() || env.livePage != nil {
		m = newProgramMetrics(env.election)
		requests = m.requests
	}
	fencedClient := c
	c = addHandlers(c, env, needs, requests)
	streams := newStreamReporter(env.log, env.problems.hasReported)
	caches := cache.New(c, cache.OnError(streams.recordError), cache.OnRecovered(streams.recordRecovery), cache.TermVersion(env.termVersion))
	defer caches.Close()
	rt := &controller.Runtime{
		Client: c, Cache: caches, Log: env.log, Tracer: env.tracer, Namespace: env.namespace, Pod: env.pod, Elected: env.elected(),
	}
	var handlers map[string]http.Handler
	if env.handlers != nil {
		handlers = env.handlers(rt)
	}
	pages, err := newPages(handlers, env.metrics, env.election.isLost, env.log)
	if err != nil {
		return err
	}
	if env.listeners.pages == nil && len(handlers) > 0 {
		env.log.Warn("the handlers of the program are not served: give --listen, such as --listen :8080")
	}
	tracker := follow.NewSyncTracker()
	group := partGroup{runtime: rt, tracker: tracker, stop: cancel}
	if m != nil {
		rt.Observer = m.reconciles
		registerStreamMetrics(m.registry, caches.Stats, tracker.States)
		registerCertificateMetric(m.registry, env.listeners.certificateEnd)
		pages.builtInMetrics = m.registry
		pages.ready = &readiness{
			controllers: needs.Controllers, isSubscribed: m.reconciles.isSubscribed,
			cached: caches.Stats, unsynced: tracker.Unsynced,
			isEnding: func() bool { return ctx.Err() != nil },
			election: env.election, webhooks: env.webhooks, converted: convertedKinds(parts),
		}
		if env.livePage != nil {
			rt.Observer = env.livePage.observer(rt.Observer)
			err := env.livePage.start(livePageRuntime{
				cache: caches, uncached: tracker.States, reconciled: needs.Reconciles, leadership: env.election.leadership,
				unreadyReasons: pages.ready.unreadyReasons, pagesEnd: env.listeners.certificateEnd, webhooks: env.webhooks, fail: group.fail,
			}, pages)
			if err != nil {
				return err
			}
		}
		if env.listeners.probes != nil {
			s := serve(env.listeners.probes, pages.probes, env.log, group.fail)
			defer s.close()
		}
		if env.listeners.pages != nil {
			var handler http.Handler = pages.mux
			if env.listeners.readerCheck != nil {
				handler = env.listeners.readerCheck(handler)
			}
			s := serve(env.listeners.pages, handler, env.log, group.fail)
			defer s.close()
		}
	}
	if env.livePage != nil {
		defer env.livePage.end() // before the servers, which wait for the readers of the page
	}
	if hasWebhooks(parts) {
		w := webhookRuntime{
			handlerClient: addHandlers(env.unfencedClient, env, needs, requests), cache: caches,
			unfencedClient: env.unfencedClient, fencedClient: fencedClient, isLeading: env.election.isLeading, elected: env.elected(),
			fail: group.fail, registry: new(metrics.Registry), reconciled: needs.Reconciles,
		}
		if m != nil {
			w.registry, w.isCounting = m.registry, true
			w.areSubscribed = func() bool {
				return !slices.ContainsFunc(needs.Controllers, func(name string) bool { return !m.reconciles.isSubscribed(name) })
			}
		}
		if err := env.webhooks.start(ctx, w); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return group.runAll(ctx, parts)
}

// ownPod returns the namespace and the name of the Pod that the program runs in. configured is the
// namespace of its configuration. Outside of a Pod it returns configured, and no name.
func ownPod(configured string) (namespace, name string) {
	namespace, name = cmp.Or(os.Getenv("POD_NAMESPACE"), configured), os.Getenv("POD_NAME")
	// The kubelet sets this variable in each container.
	if name == "" && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		name, _ = os.Hostname() // without a name of the host there is none of the Pod
	}
	return namespace, name
}
