// Package calls serves the calls of API servers to a program: webhooks, and conversions between versions. It is the
// feature of the packages operator/webhook and operator/conversion. These have the answers, each as a [Handler]. This
// package has the address, its certificates, and the webhook configurations.
//
// The packages below it, in the order of a call:
//
//	certificates      keeps the authorities and the certificates of the address
//	serving           accepts connections, and drains them at the end
//	configuration     describes an entry of a webhook configuration
//	configpublishing  keeps the entries right
//	followed          follows one object of a cluster, for the keepers
package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/configpublishing"
	"github.com/yare-go/yare/operator/internal/calls/serving"
	"github.com/yare-go/yare/operator/internal/manifests"
)

const (
	// LastCallTime is how long the last calls may take after the drain: the timeout of a webhook, and a margin.
	LastCallTime = 12 * time.Second
	// removalTime is how long the removal of the configurations may take at the end of a program in development.
	removalTime = 5 * time.Second
)

// Name is the name of the feature: see [feature.Bringer].
const Name = "operator/internal/calls"

// calls is the feature.
type calls struct {
	program *feature.Program
	flags   flags
	// handlers are those of the parts. There is one for each package.
	handlers []Handler
	// installation is set by Install.
	installation manifests.Installation

	// endpoint is nil, and address is empty, unless the program serves its webhooks.
	endpoint endpoint
	address  address

	// isStarted is true once Start has set the fields below. They are nil before. The readiness of the program may be
	// asked for before.
	isStarted atomic.Bool
	log       *slog.Logger
	router    *router
	// publisher is nil if somebody else publishes the webhooks.
	publisher *configpublishing.Publisher
	server    *serving.Server
	// client makes probes. prober is nil outside of tests.
	client *kube.Client
	prober *prober
	// stop ends the goroutines that running waits for.
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New returns the feature for one run of a program.
func New() feature.Feature { return new(calls) }

// Declare makes the handlers of the parts, and returns the flags and the commands: see [feature.Feature].
func (c *calls) Declare(p *feature.Program) (feature.Declaration, error) {
	c.program = p
	d := feature.Declaration{Flags: c.flags.all(), Check: c.check}
	var errs []error
	isMade := make(map[string]bool)
	for _, part := range p.Parts {
		source, ok := part.(Source)
		if !ok || isMade[source.HandlerName()] {
			continue
		}
		isMade[source.HandlerName()] = true
		h, err := source.NewHandler(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.handlers = append(c.handlers, h)
		declared := h.Declare()
		d.Flags, d.Commands = append(d.Flags, declared.Flags...), append(d.Commands, declared.Commands...)
		d.Converted = append(d.Converted, declared.Converted...)
	}
	d.Commands = append(d.Commands, revokeCommand(p))
	return d, errors.Join(errs...)
}

// check returns the permissions that the program needs with the flags, or what is wrong with the flags together.
func (c *calls) check() ([]kube.Access, error) {
	if err := c.flags.check(); err != nil {
		return nil, err
	}
	if c.program.Command != "permissions" || c.flags.isOff() || c.flags.cert != "" {
		return nil, nil
	}
	return c.access(c.flags.serviceOf(c.program), c.program.Namespace), nil
}

// access returns the permissions with which the program issues its certificates and publishes what it serves. name is
// the name of the Service, and namespace is that of the program.
func (c *calls) access(name, namespace string) []kube.Access {
	all := append(configpublishing.Access(manifests.ClusterName(name, namespace), namespace, name), kube.Access{
		Resource: certificates.Resource(), Verbs: certificates.Verbs(), Names: []string{manifests.WebhookSecretName(name)},
		OwnNamespace: true,
	})
	for _, h := range c.handlers {
		all = append(all, h.Access()...)
	}
	return all
}

// Install adds what API servers need to call the program: see [feature.Feature].
func (c *calls) Install(plan *feature.Plan) error {
	c.installation = manifests.Installation{Program: c.program.Name, Name: plan.Name, Namespace: plan.Namespace}
	port, _ := feature.PodPort("", c.program.Pages.Address) // the program reports the error
	p := &planner{calls: c, plan: plan, pagesPort: port}
	if err := p.check(); err != nil || c.flags.isOff() {
		return err
	}
	return p.install()
}

// CheckDefinitions lets the handlers look at the definitions of an installation: see [feature.Checker].
func (c *calls) CheckDefinitions(
	ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition,
) error {
	return c.eachChecker(func(checker Checker) error {
		return checker.CheckDefinitions(ctx, client, definitions, c.installation, !c.flags.isOff())
	})
}

// CheckObjects lets the handlers look at the other objects of an installation: see [feature.Checker].
func (c *calls) CheckObjects(ctx context.Context, client *kube.Client, printNote func(string)) error {
	if c.flags.isOff() {
		return nil
	}
	return c.eachChecker(func(checker Checker) error {
		return checker.CheckObjects(ctx, client, c.installation, printNote)
	})
}

// eachChecker calls check for each handler that is a Checker.
func (c *calls) eachChecker(check func(Checker) error) error {
	var errs []error
	for _, h := range c.handlers {
		if checker, ok := h.(Checker); ok {
			errs = append(errs, check(checker))
		}
	}
	return errors.Join(errs...)
}

// ResourcesBefore returns the resources of the webhook configurations: see [feature.Uninstaller].
func (*calls) ResourcesBefore() []wire.Resource {
	resources := manifests.WebhookConfigurationResources()
	return resources[:]
}

// SecretsAfter returns the name of the Secret with the authorities: see [feature.Uninstaller].
func (*calls) SecretsAfter(name string) []string { return []string{manifests.WebhookSecretName(name)} }

// Start opens the address, keeps the certificates, serves, and publishes. In a test it returns when the API server
// calls the webhooks. An address that cannot be opened is an error.
func (c *calls) Start(ctx context.Context, h *feature.Host) error {
	c.log = h.Runtime.Log
	warnIfMoved(c.log, os.Getenv(manifests.InstallationVariable), c.program.Namespace, c.program.Pod)
	if !c.isServed() {
		if !c.flags.isOff() {
			c.log.Warn("the webhooks of the program are not served: give --webhooks, such as --webhooks :9443, or --webhooks \"\" without this warning")
		}
		return nil
	}
	c.endpoint = c.newEndpoint()
	var err error
	if c.address, err = c.endpoint.open(ctx); err != nil {
		return err
	}
	c.address.target.Namespaces = c.program.Watched
	return c.startServing(ctx, h)
}

// isServed reports whether the program serves its webhooks: at the address of --webhooks or, in yare dev and in tests,
// at one of its choice.
func (c *calls) isServed() bool {
	return !c.flags.isOff() && (c.flags.address != "" || c.program.IsStrict && c.program.Namespace != "")
}

// newEndpoint returns the endpoint that the flags, the mode and the environment of the program ask for.
func (c *calls) newEndpoint() endpoint {
	switch {
	case c.flags.address != "" && c.flags.cert != "":
		return &filesEndpoint{calls: c}
	case c.flags.address != "":
		return &storeEndpoint{calls: c}
	case variable(c.program, socketVariable) != "":
		return &socketEndpoint{calls: c}
	default:
		return &loopbackEndpoint{calls: c}
	}
}

// startServing does the work of Start once the address is open.
func (c *calls) startServing(ctx context.Context, h *feature.Host) (err error) {
	if c.client, err = h.NewClient(); err != nil {
		return err
	}
	registry := h.Metrics
	if registry == nil {
		registry = new(metrics.Registry)
	}
	// The certificates and the bundles are kept until the end of the last call.
	servingCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	ctx, endStart := context.WithCancel(ctx)
	c.running.Go(func() {
		select {
		case <-h.Ending:
		case <-servingCtx.Done():
		}
		endStart()
	})
	if err := c.endpoint.start(c.client, registry); err != nil {
		return err
	}
	c.addCertificates(h)
	if c.endpoint.isPublishedByProgram() {
		if c.publisher, err = c.newPublisher(h, c.reachable(servingCtx)); err != nil {
			return err
		}
		registerConfigurations(registry, c.publisher.Status)
	}
	if c.endpoint.isRemovedAtEnd() && !c.program.IsTest && isLeading(h) {
		if err := c.checkOtherProcess(ctx); err != nil {
			return err
		}
	}
	s := &Service{
		Program: c.program, Host: h, Client: c.client, Metrics: registry, Target: c.address.target,
		IsPublishedByProgram: c.endpoint.isPublishedByProgram(),
		BundleFor:            c.endpoint.bundleFor, Changed: c.endpoint.changed,
		Go: func(f func(context.Context) error) { c.runInBackground(servingCtx, f, h.Fail) },
	}
	for _, handler := range c.handlers {
		if err := handler.Prepare(s); err != nil {
			return err
		}
	}
	c.serve(ctx, h.Fail)
	c.runInBackground(servingCtx, c.endpoint.run, h.Fail)
	if c.publisher != nil {
		c.runInBackground(servingCtx, c.publisher.Run, h.Fail)
	}
	for _, handler := range c.handlers {
		if err := handler.Start(ctx, s); err != nil {
			return err
		}
	}
	if c.prober == nil {
		return nil
	}
	var kinds []string
	for _, s := range c.publisher.Status() {
		kinds = append(kinds, s.Kind)
	}
	return c.prober.waitForCalls(ctx, c.client, kinds, c.publisher.Ready, c.program.Namespace, c.address.name)
}

// isLeading reports whether the replica leads, or has no leader election.
func isLeading(h *feature.Host) bool {
	if h.Runtime.Elected == nil {
		return true
	}
	select {
	case <-h.Runtime.Elected:
		return true
	default:
		return false
	}
}

// addCertificates adds the certificate of the replica and the newest CA to those of the program.
func (c *calls) addCertificates(h *feature.Host) {
	for use, left := range map[string]func(certificates.Status) time.Duration{
		"webhooks":           func(s certificates.Status) time.Duration { return s.CertificateLeft },
		"CA of the webhooks": func(s certificates.Status) time.Duration { return s.AuthorityLeft },
	} {
		h.AddCertificate(use, func() (time.Time, error) {
			if left := left(c.endpoint.status()); left != 0 {
				return time.Now().Add(left), nil
			}
			return time.Time{}, errors.New("there is no certificate for " + use + " yet")
		})
	}
}

// serve begins to serve. The server drains its connections when ctx ends.
func (c *calls) serve(ctx context.Context, fail func(error)) {
	c.router = &router{handlers: c.handlers, log: c.log, isRemoved: func(path string) bool {
		return c.publisher != nil && c.publisher.IsRemoved(path)
	}}
	var handler http.Handler = c.router
	if c.program.IsTest {
		c.prober = newProber(handler)
		handler = c.prober
	}
	options := serving.Options{GetCertificate: c.endpoint.certificate(), Log: c.log, Fail: fail}
	if c.program.Pod != "" {
		options.DrainTime = drainTime
	}
	c.server = serving.Serve(c.address.listener, handler, options)
	context.AfterFunc(ctx, c.server.Drain)
	c.isStarted.Store(true)
	c.log.Info("serving webhooks", "address", c.address.listener.Addr().String())
}

// checkOtherProcess returns an error if another process serves the webhooks of the same configurations. A process that
// was killed has left its entries, and its address refuses connections.
func (c *calls) checkOtherProcess(ctx context.Context) error {
	hosts, err := c.publisher.OtherHosts(ctx)
	if err != nil {
		return fmt.Errorf("look for another process with the webhooks %s: %w", c.address.name, err)
	}
	for _, host := range hosts {
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, "tcp", host); err == nil {
			_ = conn.Close() // nothing was sent
			return fmt.Errorf("another process of this program serves its webhooks at %s for the same namespace %s: end it, or give one of the two --webhooks \"\", or both --leader-elect", host, c.program.Namespace)
		}
	}
	return nil
}

// reachable returns a channel that is closed when API servers can reach the replica, or ctx ends. It is nil outside of
// a Pod, where nobody has to find the replica.
func (c *calls) reachable(ctx context.Context) <-chan struct{} {
	if c.program.Pod == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	context.AfterFunc(ctx, cancel) // releases the timer at the end of ctx
	return ctx.Done()
}

// newPublisher returns a publisher of the configurations. reachable is the field of [configpublishing.Config].
func (c *calls) newPublisher(h *feature.Host, reachable <-chan struct{}) (*configpublishing.Publisher, error) {
	i := manifests.Installation{
		Program: c.program.Name, Name: c.flags.serviceOf(c.program), Namespace: c.program.Namespace,
		ManagedBy: manifests.ManagedBy,
	}
	validating, mutating, err := entriesOf(c.handlers, c.address.target)
	if err != nil {
		return nil, err
	}
	// Leader is the client for the writes of the leader, and Replica is the client for all other requests.
	config := configpublishing.Config{
		Name: c.address.name, Labels: i.Labels(), Namespace: c.program.Namespace, Target: c.address.target,
		Validating: validating, Mutating: mutating,
		Leader: h.Client, Replica: c.client, Leads: func() bool { return isLeading(h) }, Elected: h.Runtime.Elected,
		Reachable: reachable, Ending: h.Ending, Log: c.log, Contested: contested.NewReporter(c.log, h.Runtime.Observer),
		BundleFor: c.endpoint.bundleFor, Changed: c.endpoint.changed,
	}
	if c.address.target.URL == "" {
		config.Deployment = c.address.target.ServiceName // all objects of an installation have one name
	}
	if c.program.IsTest {
		config.Probe = c.address.name
	}
	return configpublishing.New(config)
}

// runInBackground runs f in a goroutine that [calls.End] waits for, and passes an error of f to fail.
func (c *calls) runInBackground(ctx context.Context, f func(context.Context) error, fail func(error)) {
	c.running.Go(func() {
		if err := f(ctx); err != nil {
			fail(err)
		}
	})
}

// UnreadyReasons returns why the replica is not ready: it has no certificate, or a bundle is not published. A standby
// can be ready like a leader, and no replica waits for the leader: in a first update the leader is of a release without
// webhooks, which ends only after the readiness of the new replica.
func (c *calls) UnreadyReasons() (lines []string) {
	if !c.isServed() {
		return nil
	}
	if !c.isStarted.Load() {
		return []string{"the webhooks are not served yet"}
	}
	ready := []func() error{c.endpoint.ready}
	if c.publisher != nil {
		ready = append(ready, c.publisher.Ready)
	}
	for _, h := range c.handlers {
		ready = append(ready, h.Ready)
	}
	for _, each := range ready {
		if err := each(); err != nil {
			lines = append(lines, err.Error())
		}
	}
	return lines
}

// End serves until the API servers have found other replicas, and releases everything.
func (c *calls) End() {
	if c.server == nil {
		if c.stop != nil {
			c.stop()
		}
		c.address.close()
		c.running.Wait()
		return
	}
	if c.endpoint.isRemovedAtEnd() {
		c.removeConfigurations()
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime+LastCallTime)
	defer cancel()
	c.server.Close(ctx)
	for _, h := range c.handlers {
		if err := h.Wait(ctx); err != nil {
			c.log.Warn("functions for the calls of API servers go on at the end of the program", "error", err)
		}
	}
	c.stop()
	c.running.Wait()
}

// removeConfigurations ends the publisher and deletes its configurations. In a test it returns when the API server no
// longer calls, because a test goes on without the program. The server must answer until then.
func (c *calls) removeConfigurations() {
	c.stop()
	c.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), removalTime)
	defer cancel()
	if err := c.publisher.Remove(ctx); err != nil {
		c.log.Warn(
			"the webhook configurations stay after the end of the program, and the API server will refuse requests: delete them",
			"configurations", c.address.name, "error", err)
		return
	}
	if c.prober != nil {
		c.prober.waitForNoCalls(ctx, c.client, c.program.Namespace, c.address.name)
	}
}

// warnIfMoved logs an error if the objects of the installation were moved to another namespace, or have got another
// name, after they were printed. installation is the value of [manifests.InstallationVariable]. It may be empty. The
// name of a Pod begins with that of its Deployment.
func warnIfMoved(log *slog.Logger, installation, namespace, pod string) {
	name, printedNamespace, isPrinted := strings.Cut(installation, ".")
	flag := "--namespace " + namespace
	switch {
	case !isPrinted:
		return
	case printedNamespace == namespace && (pod == "" || strings.HasPrefix(pod, name[:min(len(name), maxPodPrefix)])):
		return
	case printedNamespace == namespace:
		flag = "--name-prefix"
	}
	log.Error("the manifests were changed after they were printed, so the permissions and the webhook configurations have other names than the program expects",
		"printed for", installation, "runs in", namespace, "pod", pod,
		"do", "print the manifests again with "+flag+", in place of namespace, namePrefix or nameSuffix of Kustomize")
}

// maxPodPrefix is how much of the name of a Deployment is at the beginning of the names of its Pods: the server may cut
// the rest.
const maxPodPrefix = 40
