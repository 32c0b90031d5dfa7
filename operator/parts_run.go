package operator

import (
	"context"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/problems"
	"github.com/yare-go/yare/operator/internal/readycheck"
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
	// served are the addresses that servePages serves. servers are their servers.
	served  []servedListener
	servers []*server
	// certificates return when the certificates of the pages end, by their use, such as pages.
	certificates map[string]func() (time.Time, error)
}

// servedListener is a listener with the handler of its requests.
type servedListener struct {
	net.Listener
	// wrap returns the handler. It gets that of all pages.
	wrap func(pages http.Handler) http.Handler
}

// newPartsRun returns a run of parts with a client. stop ends the run. The caller closes the cache of the run.
func newPartsRun(c *kube.Client, env environment, parts []Part, stop context.CancelFunc) *partsRun {
	r := &partsRun{
		env: env, parts: parts, needs: env.features.program.Needs, fencedClient: c, certificates: make(map[string]func() (time.Time, error)),
	}
	if !env.listeners.isEmpty() || env.features.program.Pages.IsChecked || env.features.hasObserver() {
		r.metrics = newProgramMetrics(env.election)
	}
	c = r.withRequestHandlers(c)
	streams := problems.NewStreamReporter(env.log, env.problems.HasReported)
	r.cache = cache.New(c, cache.OnError(streams.RecordError), cache.OnRecovered(streams.RecordRecovery),
		cache.TermVersion(env.termVersion))
	r.runtime = &controller.Runtime{
		Client: c, Cache: r.cache, Log: env.log, Tracer: env.tracer, Namespace: env.namespace, Pod: env.pod,
		Elected: env.elected(),
	}
	for _, part := range feature.PartsWithin(parts) {
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

// maxFirstReconciles is how long the first reconciles may belong to the first sync of a program, and how long a program
// may have no stream.
const maxFirstReconciles = time.Minute

// awaitFirstSync logs the memory of the streams once all of them have been listed. It calls endFirstSync once no object
// of the lists waits for its first reconcile, at the latest after maxFirstReconciles. It returns then, or when ctx ends.
func (r *partsRun) awaitFirstSync(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var listed time.Time
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if listed.IsZero() && r.logFirstLists() {
			listed = time.Now()
		}
		isReconciled := !listed.IsZero() && (!r.hasWaitingObjects() || time.Since(listed) > maxFirstReconciles)
		hasNoStream := len(r.cache.Stats()) == 0 && time.Since(began) > maxFirstReconciles
		if isReconciled || hasNoStream {
			if r.env.endFirstSync != nil {
				r.env.endFirstSync()
			}
			return
		}
	}
}

// logFirstLists logs the memory of the streams if all of them have been listed. It returns whether they have.
func (r *partsRun) logFirstLists() bool {
	var objects int
	var compressed, sent int64
	all := r.cache.Stats()
	for _, s := range all {
		objects, compressed, sent = objects+s.Objects, compressed+s.Bytes+s.Dictionary, sent+s.JSON
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(s cache.Stats) bool { return !s.Synced }) {
		return false
	}
	attributes := []any{"streams", len(all), "objects", objects, "bytes", compressed, "jsonBytes", sent,
		"heapBytes", int64(metrics.RuntimeMetric("/memory/classes/heap/objects:bytes"))}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		attributes = append(attributes, "limitBytes", limit)
	}
	r.env.log.Info("the objects are in the cache", attributes...)
	return true
}

// hasWaitingObjects reports whether an object waits for a worker. Without metrics it returns false.
func (r *partsRun) hasWaitingObjects() bool {
	return r.metrics != nil && r.metrics.reconciles.hasWaitingObjects()
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
	if err == nil && r.env.listeners.pages == nil && !r.env.features.program.Pages.IsChecked && len(handlers) > 0 {
		r.env.log.Warn("the handlers of the program are not served: give --listen, such as --listen :8080")
	}
	return err
}

// registerMetrics counts what the parts do, and puts the metrics on the pages.
func (r *partsRun) registerMetrics() {
	r.runtime.Observer = r.metrics.reconciles
	registerStreamMetrics(r.metrics.registry, r.cache.Stats, r.group.tracker.States)
	r.pages.builtInMetrics = r.metrics.registry
}

// joinMetrics joins the metrics with those of the parts that are a [MetricsJoiner]. It is called after startFeatures,
// because the features register metrics.
func (r *partsRun) joinMetrics() error {
	for _, part := range r.env.features.program.Parts {
		joiner, ok := part.(MetricsJoiner)
		if !ok {
			continue
		}
		further, err := joiner.JoinMetrics(r.metrics.registry)
		if err != nil {
			return err
		}
		if further != nil {
			r.pages.ownMetrics = append(r.pages.ownMetrics, further)
		}
	}
	return nil
}

// makeReadiness makes the readiness of the pages. The program is not ready once ctx has ended.
func (r *partsRun) makeReadiness(ctx context.Context) {
	r.pages.readiness = &readiness{
		controllers: r.needs.Controllers, isSubscribed: r.metrics.reconciles.isSubscribed,
		cached: r.cache.Stats, uncached: r.group.tracker.States,
		isEnding: func() bool { return ctx.Err() != nil },
		election: r.env.election, features: *r.env.features, converted: r.env.features.converted(),
		checks: readycheck.New(ctx, r.env.ownChecks, r.env.log),
	}
}

// startFeatures starts the features. It is called after registerMetrics and makeReadiness. ending is closed when the
// program begins to end.
func (r *partsRun) startFeatures(ctx context.Context, ending <-chan struct{}) error {
	r.runtime.Observer = r.env.features.observe(r.runtime.Observer)
	h := &feature.Host{
		Runtime: r.runtime, Client: r.fencedClient, NewClient: r.env.newFeatureClient, WithHandlers: r.withRequestHandlers,
		UncachedStreams: r.group.tracker.States, AddPage: r.pages.addPage, Serve: r.addListener, AddCertificate: r.addCertificate,
		CertificateEnds: r.certificateEnds, Leadership: r.env.election.leadershipText, UnreadyReasons: r.unreadyReasons,
		Ending: ending, Fail: r.group.fail, SetVerbosity: r.env.setVerbosity,
	}
	if r.metrics != nil {
		h.Metrics, h.AreSubscribed = r.metrics.registry, r.areSubscribed
	}
	return r.env.features.start(ctx, h)
}

// addCertificate adds a certificate to the metrics: see [feature.Host].
func (r *partsRun) addCertificate(use string, end func() (time.Time, error)) {
	if r.metrics != nil && len(r.certificates) == 0 {
		registerCertificates(r.metrics.registry, r.certificates)
	}
	r.certificates[use] = end
}

// certificateEnds returns when the certificates of the program end, by what they are for.
func (r *partsRun) certificateEnds() map[string]time.Time {
	ends := make(map[string]time.Time)
	for use, end := range r.certificates {
		if at, err := end(); err == nil {
			ends["the "+use] = at
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

// addListener adds a listener, which servePages serves.
func (r *partsRun) addListener(listener net.Listener, wrap func(pages http.Handler) http.Handler) {
	r.served = append(r.served, servedListener{listener, wrap})
}

// servePages serves the pages at the listeners of the program and of its features. It is called after registerMetrics
// and makeReadiness.
func (r *partsRun) servePages() {
	if listener := r.env.listeners.probes; listener != nil {
		r.addListener(listener, func(http.Handler) http.Handler { return r.pages.probes })
	}
	if listener := r.env.listeners.pages; listener != nil {
		r.addListener(listener, func(pages http.Handler) http.Handler { return pages })
	}
	for _, each := range r.served {
		r.servers = append(r.servers, serve(each.Listener, each.wrap(r.pages.mux), r.env.log, r.group.fail))
	}
}

// closeServers ends the servers, the last one first, and closes the listeners.
func (r *partsRun) closeServers() {
	for _, s := range slices.Backward(r.servers) {
		s.close()
	}
	for _, each := range r.served {
		_ = each.Close() // a server has closed it already
	}
}

// areSubscribed reports whether all controllers have subscribed to their streams. It is called only with metrics.
func (r *partsRun) areSubscribed() bool {
	return !slices.ContainsFunc(r.needs.Controllers,
		func(name string) bool { return !r.metrics.reconciles.isSubscribed(name) })
}
