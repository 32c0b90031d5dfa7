package operator

import (
	"context"
	"maps"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/metrics"
)

// partsRun is one run of the parts of a program: see [runParts].
type partsRun struct {
	env   environment
	parts []Part
	// needs are those of all parts together.
	needs kube.Needs
	// fencedClient is the client of [Run], without the handlers of [addRequestHandlers].
	fencedClient *kube.Client
	// metrics is nil if nobody can read the metrics.
	metrics *programMetrics
	cache   *cache.Cache
	runtime *controller.Runtime
	group   *partGroup
	// pages is nil before makePages.
	pages *pages
	// servers serve the pages of the program and those of its features.
	servers []*server
}

// newPartsRun returns a run of parts with a client. stop ends the run. The caller closes the cache of the run.
func newPartsRun(c *kube.Client, env environment, parts []Part, needs kube.Needs, stop context.CancelFunc) *partsRun {
	r := &partsRun{env: env, parts: parts, needs: needs, fencedClient: c}
	if !env.listeners.isEmpty() || env.features.hasObserver() {
		r.metrics = newProgramMetrics(env.election)
	}
	c = r.withRequestHandlers(c)
	streams := newStreamReporter(env.log, env.problems.hasReported)
	r.cache = cache.New(c, cache.OnError(streams.recordError), cache.OnRecovered(streams.recordRecovery), cache.TermVersion(env.termVersion))
	r.runtime = &controller.Runtime{
		Client: c, Cache: r.cache, Log: env.log, Tracer: env.tracer, Namespace: env.namespace, Pod: env.pod, Elected: env.elected(),
	}
	for _, part := range partsWithin(parts) {
		if recorder, ok := part.(interface {
			Warning(obj kube.Object, reason, action, note string, args ...any)
		}); ok {
			r.runtime.Events = recorder
			break
		}
	}
	r.group = &partGroup{runtime: r.runtime, tracker: follow.NewSyncTracker(), stop: stop}
	return r
}

// logFirstLists logs the memory of the streams once all of them have been listed, or returns when ctx ends.
func (r *partsRun) logFirstLists(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var objects int
		var compressed, sent int64
		all := r.cache.Stats()
		for _, s := range all {
			objects, compressed, sent = objects+s.Objects, compressed+s.Bytes+s.Dictionary, sent+s.JSON
		}
		if len(all) > 0 && !slices.ContainsFunc(all, func(s cache.Stats) bool { return !s.Synced }) {
			attributes := []any{"streams", len(all), "objects", objects, "bytes", compressed, "jsonBytes", sent,
				"heapBytes", int64(runtimeMetric("/memory/classes/heap/objects:bytes"))}
			if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
				attributes = append(attributes, "limitBytes", limit)
			}
			r.env.log.Info("the objects are in the cache", attributes...)
			return
		}
	}
}

// withRequestHandlers returns c with the handlers that [addRequestHandlers] adds for this run.
func (r *partsRun) withRequestHandlers(c *kube.Client) *kube.Client {
	var requests *requestMetrics
	if r.metrics != nil {
		requests = r.metrics.requests
	}
	return addRequestHandlers(c, r.env, r.needs, requests)
}

// makePages makes the pages, with the handlers of the author.
func (r *partsRun) makePages() (err error) {
	var handlers map[string]http.Handler
	if r.env.ownHandlers != nil {
		handlers = r.env.ownHandlers(r.runtime)
	}
	r.pages, err = newPages(handlers, r.env.ownMetrics, r.env.election.isLost, r.env.log)
	if err == nil && r.env.listeners.pages == nil && len(handlers) > 0 {
		r.env.log.Warn("the handlers of the program are not served: give --listen, such as --listen :8080")
	}
	return err
}

// registerMetrics counts what the parts do, and puts the metrics on the pages.
func (r *partsRun) registerMetrics() {
	r.runtime.Observer = r.metrics.reconciles
	registerStreamMetrics(r.metrics.registry, r.cache.Stats, r.group.tracker.States)
	registerPagesCertificate(r.metrics.registry, r.env.listeners.certificateEnd)
	r.pages.builtInMetrics = r.metrics.registry
}

// makeReadiness makes the readiness of the pages. The program is not ready once ctx has ended.
func (r *partsRun) makeReadiness(ctx context.Context) {
	r.pages.readiness = &readiness{
		controllers: r.needs.Controllers, isSubscribed: r.metrics.reconciles.isSubscribed,
		cached: r.cache.Stats, uncached: r.group.tracker.States,
		isEnding: func() bool { return ctx.Err() != nil },
		election: r.env.election, webhooks: r.env.webhooks, features: *r.env.features, converted: convertedKinds(r.parts),
	}
}

// startFeatures starts the features. It is called after registerMetrics and makeReadiness.
func (r *partsRun) startFeatures(ctx context.Context) error {
	r.runtime.Observer = r.env.features.observe(r.runtime.Observer)
	return r.env.features.start(ctx, &feature.Host{
		Runtime: r.runtime, Reconciled: r.needs.Reconciles, UncachedStreams: r.group.tracker.States, AddPage: r.pages.addPage, Serve: r.serve,
		CertificateEnds: r.certificateEnds, Leadership: r.env.election.leadershipText, UnreadyReasons: r.unreadyReasons, Version: versions(),
		Memory: memoryOfProcess,
	})
}

// certificateEnds returns when the certificates of the program end, by what they are for.
func (r *partsRun) certificateEnds() map[string]time.Time {
	ends := make(map[string]time.Time)
	maps.Copy(ends, r.env.webhooks.certificateEnds())
	if end := r.env.listeners.certificateEnd; end != nil {
		if at, err := end(); err == nil {
			ends["the pages"] = at
		}
	}
	return ends
}

// unreadyReasons returns why the program is not ready. It returns nothing without pages.
func (r *partsRun) unreadyReasons() []string {
	if r.pages.readiness == nil {
		return nil
	}
	return r.pages.readiness.unreadyReasons()
}

// serve serves by handler what a listener accepts, until closeServers.
func (r *partsRun) serve(listener net.Listener, handler http.Handler) {
	r.servers = append(r.servers, serve(listener, handler, r.env.log, r.group.fail))
}

// servePages serves the pages at the listeners of the program. It is called after registerMetrics and makeReadiness.
func (r *partsRun) servePages() {
	if listener := r.env.listeners.probes; listener != nil {
		r.serve(listener, r.pages.probes)
	}
	if listener := r.env.listeners.pages; listener != nil {
		var handler http.Handler = r.pages.mux
		if check := r.env.listeners.readerCheck; check != nil {
			handler = check(handler)
		}
		r.serve(listener, handler)
	}
}

// closeServers ends the servers, the last one first.
func (r *partsRun) closeServers() {
	for _, s := range slices.Backward(r.servers) {
		s.close()
	}
}

// startWebhooks begins to serve the webhooks, if the program has some.
func (r *partsRun) startWebhooks(ctx context.Context) error {
	if !hasWebhooksOrConverters(r.parts) {
		return nil
	}
	w := webhookRuntime{
		handlerClient: r.withRequestHandlers(r.env.unfencedClient), cache: r.cache,
		unfencedClient: r.env.unfencedClient, fencedClient: r.fencedClient, isLeading: r.env.election.isLeading, elected: r.env.elected(),
		fail: r.group.fail, registry: new(metrics.Registry), reconciled: r.needs.Reconciles,
	}
	if r.metrics != nil {
		w.registry, w.isCounting, w.areSubscribed = r.metrics.registry, true, r.areSubscribed
	}
	return r.env.webhooks.start(ctx, w)
}

// areSubscribed reports whether all controllers have subscribed to their streams. It is called only with metrics.
func (r *partsRun) areSubscribed() bool {
	return !slices.ContainsFunc(r.needs.Controllers, func(name string) bool { return !r.metrics.reconciles.isSubscribed(name) })
}
