package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
	"github.com/yare-go/yare/operator/internal/webhook/configuration"
	"github.com/yare-go/yare/operator/internal/webhook/publishing"
	"github.com/yare-go/yare/operator/internal/webhook/serving"
)

const (
	// callsEndTime is how long the calls may take that were accepted last: the timeout of a webhook, and a margin.
	callsEndTime = 12 * time.Second
	// removalTime is how long the removal of the configurations may take at the end of a program in development.
	removalTime = 5 * time.Second
)

// servedWebhooks are the webhooks of a program that are served.
//
//	                    certificate      published by this program   called by
//	--webhooks          store            yes                         a Service
//	… --webhook-cert    files            no                          a Service
//	yare dev            none             yes                         a URL of yare dev, which passes calls on
//	tests               in memory        yes                         a URL of this process
type servedWebhooks struct {
	webhookSettings
	// name is the name of the configurations.
	name     string
	target   configuration.Target
	listener net.Listener
	// certificate returns the certificate of a connection. It is nil if the calls come without TLS.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// store and files are nil unless the certificate comes from there.
	store *certificates.Store
	files *certificates.Files
	// bundle is the bundle to publish, unless there is a store. It is empty if the program publishes nothing.
	bundle []byte
	// isRemoved is true if the configurations end with the program.
	isRemoved bool

	// isStarted is true once start has set the fields below, and the store. They are nil before. Probes of the readiness ask
	// before.
	isStarted atomic.Bool
	publisher *publishing.Publisher
	handler   *admission.Handler
	// conversionPublisher is nil without converters, with the files of a certificate, and in tests.
	conversionPublisher conversionPublisher
	prober              *admission.Prober // in tests only
	server              *serving.Server
	// probeClient is the client that makes probes. It is nil outside of tests.
	probeClient *kube.Client
	stop        context.CancelFunc
	running     sync.WaitGroup
}

// openWebhooks opens the address of the webhooks, and reads the files of their certificate.
func openWebhooks(ctx context.Context, s webhookSettings) (webhookService, error) {
	w := &servedWebhooks{webhookSettings: s}
	w.target.Namespaces = s.watched
	err := w.open(ctx)
	if err != nil {
		w.closeListener()
		return nil, err
	}
	return w, nil
}

func (w *servedWebhooks) open(ctx context.Context) error {
	switch socket := w.variable(webhooksSocketVariable); {
	case w.flags.address != "":
		return w.openService(ctx)
	case socket != "":
		return w.openSocket(ctx, socket)
	default:
		return w.openLoopback(ctx)
	}
}

// openService opens the address of --webhooks, which a Service has as its target.
func (w *servedWebhooks) openService(ctx context.Context) (err error) {
	if w.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", w.flags.address); err != nil {
		return listenError("--webhooks", err)
	}
	service := cmp.Or(w.flags.service, w.program)
	w.name = manifests.ClusterName(service, w.namespace)
	w.target.ServiceName, w.target.ServiceNamespace = service, w.namespace
	if w.flags.cert == "" {
		return nil // start makes the store, which needs a client
	}
	if w.files, err = certificates.NewFiles(w.flags.cert, w.flags.key, w.log); err != nil {
		return err
	}
	w.certificate = w.files.GetCertificate
	return nil
}

// openSocket opens the socket to which yare dev passes the calls on. The configurations stay when the program ends,
// because its next process follows.
func (w *servedWebhooks) openSocket(ctx context.Context, socket string) (err error) {
	if w.bundle, err = os.ReadFile(w.variable(webhooksCAVariable)); err != nil {
		return fmt.Errorf("read the file that %s names: %w", webhooksCAVariable, err)
	}
	_ = os.Remove(socket) // a process that was killed leaves it
	if w.listener, err = new(net.ListenConfig).Listen(ctx, "unix", socket); err != nil {
		return fmt.Errorf("listen on the socket that %s names: %w", webhooksSocketVariable, err)
	}
	w.name, w.target.URL = manifests.ClusterName(w.program, w.namespace), w.variable(webhooksURLVariable)
	return nil
}

// openLoopback opens an address of this machine, for an API server on the same machine.
func (w *servedWebhooks) openLoopback(ctx context.Context) (err error) {
	if w.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for calls of webhooks: %w", err)
	}
	address := w.listener.Addr().String()
	w.name, w.target.URL = manifests.ClusterName(w.program, w.namespace), "https://"+address
	hasRestarts := access.HasRestarts(ctx)
	if w.mode == testMode && !hasRestarts { // several programs of a test can have one name
		_, port, _ := net.SplitHostPort(address)
		w.name += "." + port
	}
	w.isRemoved = !hasRestarts
	serving, bundle, err := certificates.InMemory(certificates.LoopbackNames())
	w.bundle = bundle
	w.certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving, nil }
	return err
}

// start begins to keep the certificates, to serve, and to publish. In a test it returns when the API server calls the
// webhooks.
func (w *servedWebhooks) start(ctx context.Context, rt webhookRuntime) (err error) {
	w.handler, err = admission.NewHandler(w.webhooks, admission.Options{
		Client: rt.handlerClient.With(rt.cache.Handler), Namespaces: w.watched, IsStrict: w.mode.isStrict(), Logger: w.log, Observer: newCallMetrics(rt.registry),
	})
	if err != nil {
		return err
	}
	// The certificates and the bundles are kept until the end of the last call.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	if w.flags.address != "" && w.files == nil {
		w.store, err = certificates.New(certificates.Config{
			Client: rt.unfencedClient, Namespace: w.namespace, Secret: manifests.WebhookSecretName(w.target.ServiceName),
			Names: certificates.ServiceNames(w.target.ServiceName, w.namespace), Log: w.log,
		})
		if err != nil {
			return err
		}
		w.certificate = w.store.GetCertificate
		registerCertificateMetrics(rt.registry, w.store.Status)
	}
	if w.files != nil {
		registerCertificateMetrics(rt.registry, w.files.Status)
	} else {
		if w.publisher, err = w.newPublisher(rt, w.reachable(running)); err != nil {
			return err
		}
		registerConfigurationMetrics(rt.registry, w.publisher.Status)
	}
	if w.isRemoved && w.mode != testMode && rt.isLeading() {
		if err := w.checkOtherProcess(ctx); err != nil {
			return err
		}
	}
	var handler http.Handler = w.handler
	if w.conversions != nil {
		if handler, err = w.conversions.handler(handler, w.log, rt.registry); err != nil {
			return err
		}
		if w.mode.isStrict() {
			w.conversions.warnOfVersions(rt.reconciled, w.log)
		}
		if w.files == nil && w.mode != testMode {
			if w.conversionPublisher, err = w.newConversionPublisher(rt); err != nil {
				return err
			}
		}
	}
	if w.mode == testMode {
		w.prober = admission.NewProber(handler)
		handler = w.prober
	}
	options := serving.Options{GetCertificate: w.certificate, Log: w.log, Fail: rt.fail}
	if w.pod != "" {
		options.DrainTime = webhookDrainTime
	}
	w.server = serving.Serve(w.listener, handler, options)
	context.AfterFunc(ctx, w.server.Drain)
	w.isStarted.Store(true)
	w.log.Info("serving webhooks", "address", w.listener.Addr().String())
	if w.store != nil {
		w.running.Go(func() { w.run(running, w.store.Run, rt.fail) })
	}
	if w.publisher != nil {
		w.running.Go(func() { w.run(running, w.publisher.Run, rt.fail) })
	}
	if w.conversionPublisher != nil {
		w.running.Go(func() { w.run(running, w.conversionPublisher.Run, rt.fail) })
		if w.mode.isStrict() { // objects must not be read before API servers convert them
			if err := waitForConversions(ctx, w.conversionPublisher); err != nil {
				return err
			}
		}
	}
	if w.conversions != nil && rt.isCounting {
		counted := objectCountSettings{
			client: rt.unfencedClient, cache: rt.cache, namespaces: w.watched, elected: rt.elected, areSubscribed: rt.areSubscribed, log: w.log, registry: rt.registry,
		}
		w.running.Go(func() { w.conversions.countObjects(ctx, counted) })
	}
	if w.mode == testMode {
		w.probeClient = rt.unfencedClient
		if w.conversions != nil {
			if err := w.publishInTest(w.conversions, ctx, rt.unfencedClient, w.log); err != nil {
				return err
			}
		}
		return waitForCalls(ctx, rt.unfencedClient, w.publisher, w.prober, w.namespace, w.probe())
	}
	return nil
}

// checkOtherProcess returns an error if another process serves the webhooks of the same configurations. A process that was
// killed has left its entries, and its address refuses connections.
func (w *servedWebhooks) checkOtherProcess(ctx context.Context) error {
	hosts, err := w.publisher.OtherHosts(ctx)
	if err != nil {
		return fmt.Errorf("look for another process with the webhooks %s: %w", w.name, err)
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

// reachable returns a channel that is closed when API servers can reach the replica, or ctx ends. It is nil outside of a
// Pod, where nobody has to find the replica.
func (w *servedWebhooks) reachable(ctx context.Context) <-chan struct{} {
	if w.pod == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, webhookReachTime)
	context.AfterFunc(ctx, cancel) // releases the timer at the end of ctx
	return ctx.Done()
}

// newPublisher returns a publisher of the configurations.
func (w *servedWebhooks) newPublisher(rt webhookRuntime, reachable <-chan struct{}) (*publishing.Publisher, error) {
	i := manifests.Installation{Program: w.program, Name: cmp.Or(w.flags.service, w.program), Namespace: w.namespace, ManagedBy: manifests.ManagedBy}
	c := publishing.Config{
		Name: w.name, Labels: i.Labels(), Namespace: w.namespace, Webhooks: w.webhooks, Target: w.target,
		Probe: w.probe(), Leader: rt.fencedClient, Replica: rt.unfencedClient, Leads: rt.isLeading, Elected: rt.elected, Reachable: reachable, Log: w.log,
		BundleFor: func([]byte) []byte { return w.bundle },
		Changed:   func() <-chan struct{} { return nil },
	}
	if w.store != nil {
		c.BundleFor, c.Changed = w.store.BundleFor, w.store.Changed
	}
	return publishing.New(c)
}

// newConversionPublisher returns what publishes the conversions with the bundle of the program.
func (w *servedWebhooks) newConversionPublisher(rt webhookRuntime) (conversionPublisher, error) {
	s := conversionSettings{
		target: w.target, client: rt.unfencedClient, log: w.log, registry: rt.registry,
		bundleFor: func([]byte) []byte { return w.bundle },
		changed:   func() <-chan struct{} { return nil },
	}
	if w.store != nil {
		s.bundleFor, s.changed = w.store.BundleFor, w.store.Changed
	}
	return w.conversions.publisher(s)
}

// probe returns the name of the objects that probes are about. It is empty outside of tests.
func (w *servedWebhooks) probe() string {
	if w.mode != testMode {
		return ""
	}
	return w.name
}

// run runs a function that must not fail.
func (w *servedWebhooks) run(ctx context.Context, f func(context.Context) error, fail func(error)) {
	if err := f(ctx); err != nil {
		fail(err)
	}
}

// unreadyReasons returns why the replica is not ready: it has no certificate, or a bundle is not published. A standby can be
// ready like a leader, and no replica waits for the leader: in a first update the leader is of a release without
// webhooks, which ends only after the readiness of the new replica.
func (w *servedWebhooks) unreadyReasons() (lines []string) {
	if !w.isStarted.Load() {
		return []string{"the webhooks are not served yet"}
	}
	if w.store != nil {
		if err := w.store.Ready(); err != nil {
			lines = append(lines, err.Error())
		}
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
	var s certificates.Status
	switch {
	case w.store != nil:
		s = w.store.Status()
	case w.files != nil:
		s = w.files.Status()
	}
	ends, now := make(map[string]time.Time), time.Now()
	for use, left := range map[string]time.Duration{"the webhooks": s.CertificateLeft, "the CA of the webhooks": s.AuthorityLeft} {
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
		w.closeListener()
		return
	}
	if w.isRemoved {
		w.removeConfigurations()
	}
	ctx, cancel := context.WithTimeout(context.Background(), webhookDrainTime+callsEndTime)
	defer cancel()
	w.server.Close(ctx)
	if err := w.handler.Wait(ctx); err != nil {
		w.log.Warn("functions of webhooks go on at the end of the program", "error", err)
	}
	if w.conversions != nil {
		if err := w.conversions.wait(ctx); err != nil {
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
		w.log.Warn("the webhook configurations stay after the end of the program, and the API server will refuse requests: delete them", "configurations", w.name, "error", err)
		return
	}
	if w.mode == testMode {
		waitForNoCalls(ctx, w.probeClient, w.prober, w.namespace, w.probe())
	}
}

func (w *servedWebhooks) closeListener() {
	if w.listener != nil {
		_ = w.listener.Close() // it has no calls yet
	}
}
