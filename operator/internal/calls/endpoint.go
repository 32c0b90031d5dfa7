package calls

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"

	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// endpoint is one of the four ways in which API servers reach the webhooks of a program:
//
//	type                by                    certificate      published by this program   called by
//	storeEndpoint       --webhooks            in a Secret      yes                         a Service
//	filesEndpoint       … --webhook-cert      in files         no                          a Service
//	socketEndpoint      yare dev              none             yes                         a URL of yare dev, which passes calls on
//	loopbackEndpoint    tests, and yare dev   in memory        yes                         a URL of this process
type endpoint interface {
	// open opens the address. With an error it may return an address that is open. It is called first, and once.
	open(ctx context.Context) (address, error)
	// start prepares the certificate once the program has a client, and registers its metrics. The methods below are
	// called after start.
	start(client *kube.Client, registry *metrics.Registry) error
	// certificate returns the function that returns the certificate of a connection. The function is nil if the calls come
	// without TLS.
	certificate() func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// run keeps the certificate until ctx ends. It returns at once if there is nothing to keep.
	run(ctx context.Context) error
	// ready returns nil, or why the replica has no certificate.
	ready() error
	// status returns how long the certificate and the newest CA are valid. Zero stands for neither.
	status() certificates.Status
	// isPublishedByProgram reports whether the program publishes the configurations of its webhooks, with the bundle of
	// bundleFor. Otherwise whoever gives the program its certificate publishes them.
	isPublishedByProgram() bool
	// bundleFor and changed are the fields BundleFor and Changed of [configpublishing.Config].
	bundleFor(published []byte) []byte
	changed() <-chan struct{}
	// isRemovedAtEnd reports whether the program deletes the configurations of its webhooks when it ends.
	isRemovedAtEnd() bool
}

// address is where API servers call the webhooks of a program.
type address struct {
	listener net.Listener
	// name is the name of the webhook configurations.
	name   string
	target configuration.Target
}

// close closes the listener, if there is one. It has no calls yet.
func (a address) close() {
	if a.listener != nil {
		_ = a.listener.Close()
	}
}

// openServiceAddress opens the address of --webhooks, which a Service has as its target.
func openServiceAddress(ctx context.Context, c *calls) (a address, err error) {
	if a.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", c.flags.address); err != nil {
		return a, feature.ListenError("--webhooks", err)
	}
	service, namespace := c.flags.serviceOf(c.program), c.program.Namespace
	a.name = manifests.ClusterName(service, namespace)
	a.target.ServiceName, a.target.ServiceNamespace = service, namespace
	return a, nil
}

// The variables by which yare dev has the calls of webhooks sent through a server of its own, which stays while the
// program is built and started again.
const (
	// urlVariable is the URL that API servers call.
	urlVariable = "YARE_WEBHOOKS_URL"
	// caVariable is a file with the bundle by which API servers verify that URL.
	caVariable = "YARE_WEBHOOKS_CA"
	// socketVariable is the Unix socket on which the program takes the calls, without TLS.
	socketVariable = "YARE_WEBHOOKS_SOCKET"
)

// variable returns the value of an environment variable of yare dev.
func variable(p *feature.Program, name string) string {
	if !p.IsDevelopment {
		return ""
	}
	return os.Getenv(name)
}

// storeEndpoint is the address of --webhooks. The program keeps its CAs in a Secret.
type storeEndpoint struct {
	calls *calls
	// store is nil before start.
	store *certificates.Store
}

func (e *storeEndpoint) open(ctx context.Context) (address, error) {
	return openServiceAddress(ctx, e.calls)
}

func (e *storeEndpoint) start(client *kube.Client, registry *metrics.Registry) (err error) {
	service, namespace := e.calls.flags.serviceOf(e.calls.program), e.calls.program.Namespace
	e.store, err = certificates.New(certificates.Config{
		Client: client, Namespace: namespace, Secret: manifests.WebhookSecretName(service), Deployment: service,
		Names: certificates.ServiceNames(service, namespace), Log: e.calls.log,
	})
	if err == nil {
		registerCertificates(registry, e.store.Status)
	}
	return err
}

func (e *storeEndpoint) certificate() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return e.store.GetCertificate
}

func (e *storeEndpoint) run(ctx context.Context) error     { return e.store.Run(ctx) }
func (e *storeEndpoint) ready() error                      { return e.store.Ready() }
func (e *storeEndpoint) status() certificates.Status       { return e.store.Status() }
func (*storeEndpoint) isPublishedByProgram() bool          { return true }
func (e *storeEndpoint) bundleFor(published []byte) []byte { return e.store.BundleFor(published) }
func (e *storeEndpoint) changed() <-chan struct{}          { return e.store.Changed() }
func (*storeEndpoint) isRemovedAtEnd() bool                { return false }

// filesEndpoint is the address of --webhooks with the certificate of --webhook-cert. Whoever keeps the certificate also
// publishes its CA.
type filesEndpoint struct {
	calls *calls
	// files is nil before open.
	files *certificates.Files
}

func (e *filesEndpoint) open(ctx context.Context) (address, error) {
	a, err := openServiceAddress(ctx, e.calls)
	if err == nil {
		e.files, err = certificates.NewFiles(e.calls.flags.cert, e.calls.flags.key, e.calls.log)
	}
	return a, err
}

func (e *filesEndpoint) start(_ *kube.Client, registry *metrics.Registry) error {
	registerCertificates(registry, e.files.Status)
	return nil
}

func (e *filesEndpoint) certificate() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return e.files.GetCertificate
}

func (*filesEndpoint) run(context.Context) error     { return nil }
func (*filesEndpoint) ready() error                  { return nil }
func (e *filesEndpoint) status() certificates.Status { return e.files.Status() }
func (*filesEndpoint) isPublishedByProgram() bool    { return false }
func (*filesEndpoint) bundleFor([]byte) []byte       { return nil }
func (*filesEndpoint) changed() <-chan struct{}      { return nil }
func (*filesEndpoint) isRemovedAtEnd() bool          { return false }

// socketEndpoint is the socket to which yare dev passes the calls on. The configurations stay when the program ends,
// because its next process follows.
type socketEndpoint struct {
	calls *calls
	// bundle is that of yare dev.
	bundle []byte
}

func (e *socketEndpoint) open(ctx context.Context) (a address, err error) {
	socket := variable(e.calls.program, socketVariable)
	if e.bundle, err = os.ReadFile(variable(e.calls.program, caVariable)); err != nil {
		return a, fmt.Errorf("read the file that %s names: %w", caVariable, err)
	}
	_ = os.Remove(socket) // a process that was killed leaves it
	if a.listener, err = new(net.ListenConfig).Listen(ctx, "unix", socket); err != nil {
		return a, fmt.Errorf("listen on the socket that %s names: %w", socketVariable, err)
	}
	a.name = manifests.ClusterName(e.calls.program.Name, e.calls.program.Namespace)
	a.target.URL = variable(e.calls.program, urlVariable)
	return a, nil
}

func (*socketEndpoint) certificate() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil
}

func (*socketEndpoint) start(*kube.Client, *metrics.Registry) error { return nil }
func (*socketEndpoint) run(context.Context) error                   { return nil }
func (*socketEndpoint) ready() error                                { return nil }
func (*socketEndpoint) status() certificates.Status                 { return certificates.Status{} }
func (*socketEndpoint) isPublishedByProgram() bool                  { return true }
func (e *socketEndpoint) bundleFor([]byte) []byte                   { return e.bundle }
func (*socketEndpoint) changed() <-chan struct{}                    { return nil }
func (*socketEndpoint) isRemovedAtEnd() bool                        { return false }

// loopbackEndpoint is an address of this machine, for an API server on the same machine.
type loopbackEndpoint struct {
	calls   *calls
	serving *tls.Certificate
	bundle  []byte
	// isTemporary is true unless the next process of the program follows this one.
	isTemporary bool
}

func (e *loopbackEndpoint) open(ctx context.Context) (a address, err error) {
	if a.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return a, fmt.Errorf("listen for calls of webhooks: %w", err)
	}
	address := a.listener.Addr().String()
	a.name, a.target.URL = manifests.ClusterName(e.calls.program.Name, e.calls.program.Namespace), "https://"+address
	e.isTemporary = !programctx.HasRestarts(ctx)
	if e.calls.program.IsTest && e.isTemporary { // several programs of a test can have one name
		_, port, _ := net.SplitHostPort(address)
		a.name += "." + port
	}
	e.serving, e.bundle, err = certificates.InMemory(certificates.LoopbackNames())
	return a, err
}

func (e *loopbackEndpoint) certificate() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return e.serving, nil }
}

func (*loopbackEndpoint) start(*kube.Client, *metrics.Registry) error { return nil }
func (*loopbackEndpoint) run(context.Context) error                   { return nil }
func (*loopbackEndpoint) ready() error                                { return nil }
func (*loopbackEndpoint) status() certificates.Status                 { return certificates.Status{} }
func (*loopbackEndpoint) isPublishedByProgram() bool                  { return true }
func (e *loopbackEndpoint) bundleFor([]byte) []byte                   { return e.bundle }
func (*loopbackEndpoint) changed() <-chan struct{}                    { return nil }
func (e *loopbackEndpoint) isRemovedAtEnd() bool                      { return e.isTemporary }
