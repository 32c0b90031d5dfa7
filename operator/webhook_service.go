package operator

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
	"github.com/yare-go/yare/operator/internal/webhook/configpublishing"
	"github.com/yare-go/yare/operator/internal/webhook/serving"
)

const (
	// callsEndTime is how long the last calls may take after the drain: the timeout of a webhook, and a margin.
	callsEndTime = 12 * time.Second
	// removalTime is how long the removal of the configurations may take at the end of a program in development.
	removalTime = 5 * time.Second
)

// webhookService serves all webhooks of a program.
type webhookService interface {
	// start begins to serve. It returns an error if the webhooks cannot be served.
	start(ctx context.Context, rt webhookRuntime) error
	// unreadyReasons returns why the replica is not ready.
	unreadyReasons() []string
	// certificateEnds returns when the certificates end, by what they are for.
	certificateEnds() map[string]time.Time
	// end serves until the API servers have found other replicas, and releases everything. It does so too if start was
	// not called.
	end()
}

// unservedWebhooks is the service of a program without webhooks, or with webhooks that are not served.
type unservedWebhooks struct{}

func (unservedWebhooks) start(context.Context, webhookRuntime) error { return nil }
func (unservedWebhooks) unreadyReasons() []string                    { return nil }
func (unservedWebhooks) certificateEnds() map[string]time.Time       { return nil }
func (unservedWebhooks) end()                                        {}

// servedWebhooks implements [webhookService] by a [webhookEndpoint].
type servedWebhooks struct {
	webhookSettings
	endpoint webhookEndpoint
	address  webhookAddress

	// isStarted is true once start has set the fields below. They are nil before. The readiness of the program may be
	// asked for before.
	isStarted atomic.Bool
	handler   *admission.Handler
	// publisher is nil if somebody else publishes the webhooks.
	publisher *configpublishing.Publisher
	// conversionPublisher is nil without converters, if somebody else publishes them, and in tests.
	conversionPublisher conversionPublisher
	server              *serving.Server
	// probeClient is the client that makes probes. It is nil outside of tests.
	probeClient *kube.Client
	// stop ends the goroutines that running waits for.
	stop    context.CancelFunc
	running sync.WaitGroup
}

// openServedWebhooks opens the address of the webhooks, and reads the files of their certificate.
func openServedWebhooks(ctx context.Context, s webhookSettings) (webhookService, error) {
	endpoint := s.newEndpoint()
	address, err := endpoint.open(ctx)
	if err != nil {
		address.close()
		return nil, err
	}
	address.target.Namespaces = s.watched
	return &servedWebhooks{webhookSettings: s, endpoint: endpoint, address: address}, nil
}

// start begins to keep the certificates, to serve, and to publish. In a test it returns when the API server calls the
// webhooks.
func (w *servedWebhooks) start(ctx context.Context, rt webhookRuntime) error {
	var err error
	w.handler, err = admission.NewHandler(w.webhooks, admission.Options{
		Client: rt.handlerClient.With(rt.cache.Handler), Namespaces: w.watched, IsStrict: w.mode.isStrict(), Logger: w.log,
		Observer:  newCallMetrics(rt.registry, w.webhooks),
		IsRemoved: func(path string) bool { return w.publisher != nil && w.publisher.IsRemoved(path) },
	})
	if err != nil {
		return err
	}
	// The certificates and the bundles are kept until the end of the last call.
	servingCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	if err := w.endpoint.start(rt); err != nil {
		return err
	}
	if w.endpoint.isPublishedByProgram() {
		if w.publisher, err = w.newPublisher(rt, w.reachable(servingCtx), ctx.Done()); err != nil {
			return err
		}
		registerWebhookConfigurations(rt.registry, w.publisher.Status)
	}
	if w.endpoint.isRemovedAtEnd() && w.mode != testMode && rt.isLeading() {
		if err := w.checkOtherProcess(ctx); err != nil {
			return err
		}
	}
	handler, err := w.addConversions(w.handler, rt)
	if err != nil {
		return err
	}
	w.serve(ctx, handler, rt.fail)
	w.runInBackground(servingCtx, w.endpoint.run, rt.fail)
	if w.publisher != nil {
		w.runInBackground(servingCtx, w.publisher.Run, rt.fail)
	}
	if err := w.startConversions(ctx, servingCtx, rt); err != nil || w.test == nil {
		return err
	}
	return w.publishInTest(ctx, rt.unfencedClient)
}

// addConversions returns a handler that answers the calls of conversions, and passes all other calls on to next. It
// makes the publisher of the conversions.
func (w *servedWebhooks) addConversions(next http.Handler, rt webhookRuntime) (http.Handler, error) {
	if w.conversions == nil {
		return next, nil
	}
	handler, err := w.conversions.makeHandler(next, w.log, rt.registry)
	if err != nil {
		return nil, err
	}
	if w.mode.isStrict() {
		w.conversions.warnOfVersions(rt.reconciled, w.log)
	}
	if w.endpoint.isPublishedByProgram() && w.mode != testMode {
		w.conversionPublisher, err = w.conversions.makePublisher(conversionSettings{
			target: w.address.target, client: rt.unfencedClient, log: w.log, registry: rt.registry,
			bundleFor: w.endpoint.bundleFor, changed: w.endpoint.changed,
		})
	}
	return handler, err
}

// serve begins to serve. The server drains its connections when ctx ends.
func (w *servedWebhooks) serve(ctx context.Context, handler http.Handler, fail func(error)) {
	if w.test != nil {
		handler = w.test.wrapHandler(handler)
	}
	options := serving.Options{GetCertificate: w.endpoint.certificate(), Log: w.log, Fail: fail}
	if w.pod != "" {
		options.DrainTime = webhookDrainTime
	}
	w.server = serving.Serve(w.address.listener, handler, options)
	context.AfterFunc(ctx, w.server.Drain)
	w.isStarted.Store(true)
	w.log.Info("serving webhooks", "address", w.address.listener.Addr().String())
}

// startConversions begins to publish the conversions, and to count the objects. servingCtx ends after the last call.
func (w *servedWebhooks) startConversions(ctx, servingCtx context.Context, rt webhookRuntime) error {
	if w.conversions == nil {
		return nil
	}
	if w.conversionPublisher != nil {
		w.runInBackground(servingCtx, w.conversionPublisher.Run, rt.fail)
		if w.mode.isStrict() { // objects must not be read before API servers convert them
			if err := waitForPublication(ctx, w.conversionPublisher); err != nil {
				return err
			}
		}
	}
	if rt.isCounting {
		counter := objectCounter{
			client: rt.unfencedClient, cache: rt.cache, namespaces: w.watched, elected: rt.elected,
			areSubscribed: rt.areSubscribed, log: w.log, registry: rt.registry,
		}
		w.running.Go(func() { w.conversions.countObjects(ctx, counter) })
	}
	return nil
}

// publishInTest publishes the conversions in a test. It returns when the API server calls the webhooks.
func (w *servedWebhooks) publishInTest(ctx context.Context, client *kube.Client) error {
	w.probeClient = client
	if w.conversions != nil {
		if err := w.test.publishConversions(ctx, w.conversions, client, w.log); err != nil {
			return err
		}
	}
	var kinds []string
	for _, s := range w.publisher.Status() {
		kinds = append(kinds, s.Kind)
	}
	return w.test.waitForCalls(ctx, client, kinds, w.publisher.Ready, w.namespace, w.address.name)
}

// checkOtherProcess returns an error if another process serves the webhooks of the same configurations. A process that
// was killed has left its entries, and its address refuses connections.
func (w *servedWebhooks) checkOtherProcess(ctx context.Context) error {
	hosts, err := w.publisher.OtherHosts(ctx)
	if err != nil {
		return fmt.Errorf("look for another process with the webhooks %s: %w", w.address.name, err)
	}
	for _, host := range hosts {
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, "tcp", host); err == nil {
			_ = conn.Close() // nothing was sent
			return fmt.Errorf("another process of this program serves its webhooks at %s for the same namespace %s: end it, or give one of the two --webhooks \"\", or both --leader-elect", host, w.namespace)
		}
	}
	return nil
}

// reachable returns a channel that is closed when API servers can reach the replica, or ctx ends. It is nil outside of
// a Pod, where nobody has to find the replica.
func (w *servedWebhooks) reachable(ctx context.Context) <-chan struct{} {
	if w.pod == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, webhookReachTime)
	context.AfterFunc(ctx, cancel) // releases the timer at the end of ctx
	return ctx.Done()
}

// newPublisher returns a publisher of the configurations. reachable and ending are the fields of
// [configpublishing.Config].
func (w *servedWebhooks) newPublisher(
	rt webhookRuntime, reachable, ending <-chan struct{},
) (*configpublishing.Publisher, error) {
	i := manifests.Installation{
		Program: w.program, Name: cmp.Or(w.flags.service, w.program), Namespace: w.namespace, ManagedBy: manifests.ManagedBy,
	}
	// Leader is the client for the writes of the leader, and Replica is the client for all other requests.
	c := configpublishing.Config{
		Name: w.address.name, Labels: i.Labels(), Namespace: w.namespace, Webhooks: w.webhooks, Target: w.address.target,
		Leader: rt.fencedClient, Replica: rt.unfencedClient, Leads: rt.isLeading, Elected: rt.elected, Reachable: reachable,
		Ending: ending, Log: w.log,
		BundleFor: w.endpoint.bundleFor, Changed: w.endpoint.changed,
	}
	if w.address.target.URL == "" {
		c.Deployment = w.address.target.ServiceName // all objects of an installation have one name
	}
	if w.test != nil {
		c.Probe = w.address.name
	}
	return configpublishing.New(c)
}

// runInBackground runs f in a goroutine that [servedWebhooks.end] waits for, and passes an error of f to fail.
func (w *servedWebhooks) runInBackground(ctx context.Context, f func(context.Context) error, fail func(error)) {
	w.running.Go(func() {
		if err := f(ctx); err != nil {
			fail(err)
		}
	})
}

// unreadyReasons returns why the replica is not ready: it has no certificate, or a bundle is not published. A standby
// can be ready like a leader, and no replica waits for the leader: in a first update the leader is of a release without
// webhooks, which ends only after the readiness of the new replica.
func (w *servedWebhooks) unreadyReasons() (lines []string) {
	if !w.isStarted.Load() {
		return []string{"the webhooks are not served yet"}
	}
	if err := w.endpoint.ready(); err != nil {
		lines = append(lines, err.Error())
	}
	if w.publisher != nil {
		if err := w.publisher.Ready(); err != nil {
			lines = append(lines, err.Error())
		}
	}
	if w.conversionPublisher != nil {
		if err := w.conversionPublisher.Ready(); err != nil {
			lines = append(lines, err.Error())
		}
	}
	return lines
}

// certificateEnds returns when the serving certificate of this replica and the newest CA end.
func (w *servedWebhooks) certificateEnds() map[string]time.Time {
	if !w.isStarted.Load() {
		return nil
	}
	s := w.endpoint.status()
	ends, now := make(map[string]time.Time), time.Now()
	for use, left := range map[string]time.Duration{
		"the webhooks": s.CertificateLeft, "the CA of the webhooks": s.AuthorityLeft,
	} {
		if left != 0 {
			ends[use] = now.Add(left)
		}
	}
	return ends
}

// end drains the server, and releases everything. The caller has ended the parts and released the lease.
func (w *servedWebhooks) end() {
	if w.server == nil {
		if w.stop != nil {
			w.stop()
		}
		w.address.close()
		return
	}
	if w.endpoint.isRemovedAtEnd() {
		w.removeConfigurations()
	}
	ctx, cancel := context.WithTimeout(context.Background(), webhookDrainTime+callsEndTime)
	defer cancel()
	w.server.Close(ctx)
	if err := w.handler.Wait(ctx); err != nil {
		w.log.Warn("functions of webhooks go on at the end of the program", "error", err)
	}
	if w.conversions != nil {
		if err := w.conversions.finishCalls(ctx); err != nil {
			w.log.Warn("conversions go on at the end of the program", "error", err)
		}
	}
	w.stop()
	w.running.Wait()
}

// removeConfigurations ends the publisher and deletes its configurations. In a test it returns when the API server no
// longer calls, because a test goes on without the program. The server must answer until then.
func (w *servedWebhooks) removeConfigurations() {
	w.stop()
	w.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), removalTime)
	defer cancel()
	if err := w.publisher.Remove(ctx); err != nil {
		w.log.Warn(
			"the webhook configurations stay after the end of the program, and the API server will refuse requests: delete them",
			"configurations", w.address.name, "error", err)
		return
	}
	if w.test != nil {
		w.test.waitForNoCalls(ctx, w.probeClient, w.namespace, w.address.name)
	}
}

// partWithWebhook is a part with a webhook that the API server calls before it stores an object.
type partWithWebhook interface{ webhook() *admission.Webhook }

// webhooksOf returns the webhooks of parts, also those of parts inside of other parts. A converter is none of them.
func webhooksOf(parts []Part) (all []*admission.Webhook) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(partWithWebhook); ok {
			all = append(all, p.webhook())
		}
	}
	return all
}

// hasWebhooksOrConverters reports whether API servers call the program for at least one of parts.
func hasWebhooksOrConverters(parts []Part) bool {
	_, err := webhookCodeIn(parts)
	return err == nil
}

// webhookAccess returns the permissions with which a program issues the certificates of its webhooks and publishes
// the webhooks and conversions of its parts. name is the name of the Service, and namespace is that of the program.
func webhookAccess(name, namespace string, parts []Part) []kube.Access {
	all := append(configpublishing.Access(manifests.ClusterName(name, namespace), namespace, name), kube.Access{
		Resource: certificates.Resource(), Verbs: certificates.Verbs(), Names: []string{manifests.WebhookSecretName(name)},
		OwnNamespace: true,
	})
	if conversions, isFound, err := conversionsOf(parts); err == nil && isFound {
		all = append(all, conversions.access()...)
	}
	return all
}

// webhookTypes reports whether there are validators, and whether there are defaulters.
func webhookTypes(webhooks []*admission.Webhook) (hasValidators, hasDefaulters bool) {
	for _, w := range webhooks {
		hasDefaulters = hasDefaulters || w.IsDefaulter
		hasValidators = hasValidators || !w.IsDefaulter
	}
	return hasValidators, hasDefaulters
}
