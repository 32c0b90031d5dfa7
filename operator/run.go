package operator

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
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
	env := environment{log: withoutLogHandler(log), unfencedClient: c}
	var isTest bool
	var test webhookTest
	if env.namespace, isTest = access.CheckedNamespace(ctx); isTest {
		env.mode, test = testMode, &webhookProbe{}
	}
	var err error
	env.webhooks, err = openWebhookService(ctx, parts, webhookSettings{
		program: c.FieldManager(), namespace: env.namespace, watched: c.Namespaces(), mode: env.mode, test: test,
		log: env.log,
	})
	if err != nil {
		return err
	}
	defer env.webhooks.end()
	return runParts(ctx, c, env, parts)
}

// environment is what a program has beside its parts and its client.
type environment struct {
	log *slog.Logger
	// listeners take requests to the program. Whoever opens the listeners closes them. The program serves them only while
	// it runs. Without a listener nothing is counted.
	listeners listeners
	// problems reports the problems of requests. It may be nil.
	problems *problemReporter
	// ownHandlers and ownMetrics are the fields Handlers and Metrics of [Program]. They may be nil.
	ownHandlers func(*controller.Runtime) map[string]http.Handler
	ownMetrics  func(io.Writer)
	// tracer is the Tracer of the [Program]. It may be nil.
	tracer wire.Tracer
	// namespace and pod are the fields of [controller.Runtime].
	namespace, pod string
	mode           mode
	// election is the leader election of the program. It may be nil.
	election *leaderElection
	// newFeatureClient returns a client for a feature. It is nil in a program without flags.
	newFeatureClient func() (*kube.Client, error)
	// features are those of the parts. Whoever makes them ends them. [runParts] makes them if this is nil.
	features *features
	// webhooks are what the program serves for API servers. It may be nil.
	webhooks webhookService
	// unfencedClient does not pass the fence of the election. It is nil in a program without webhooks.
	unfencedClient *kube.Client
}

// mode is what a program runs for. It decides what the program does about the mistakes of its author.
type mode int

const (
	// productionMode is the mode of a program that users depend on.
	productionMode mode = iota
	// developmentMode is the mode of a program with the environment variable [access.CheckVariable], which yare dev sets.
	developmentMode
	// testMode is the mode of a program in the process of a test, which ends with the test.
	testMode
)

// isStrict reports whether m is a strict mode. Then the program refuses requests that its parts do not declare, and a
// webhook that breaks a rule fails.
func (m mode) isStrict() bool { return m != productionMode }

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
// The end comes in this order. The program reports that it is not ready, and takes no new work. The parts finish what
// is under way, each within its grace. The services end. The listeners, which have answered until then, are closed. The
// streams end. Then the caller releases the lease, and ends the webhooks.
func runParts(ctx context.Context, c *kube.Client, env environment, parts []Part) error {
	needs, err := needsOf(parts)
	if err != nil {
		return err
	}
	if env.webhooks == nil {
		env.webhooks = unservedWebhooks{}
	}
	if env.features == nil {
		made := newFeatures(parts, newFeatureProgram(c.FieldManager(), "run", ""))
		defer made.end()
		env.features = &made
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newPartsRun(c, env, parts, needs, cancel)
	defer r.cache.Close()
	if err := r.makePages(); err != nil {
		return err
	}
	if r.metrics != nil {
		r.registerMetrics()
		r.makeReadiness(ctx)
	}
	defer r.closeServers()
	// The context of the features ends before the servers, which wait for the readers of their pages.
	featuresCtx, endFeatures := context.WithCancel(context.WithoutCancel(ctx))
	defer endFeatures()
	if err := r.startFeatures(featuresCtx); err != nil {
		return err
	}
	if r.metrics != nil {
		r.servePages()
	}
	env.election.begin(ctx)
	if err := r.startWebhooks(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	env.election.waitForFirstAttempt(ctx)
	var logging sync.WaitGroup
	defer logging.Wait()
	defer cancel()
	logging.Go(func() { r.logFirstLists(ctx) })
	return r.group.runAll(ctx, parts)
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
