package operator

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
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
	namespace, _ := access.CheckedNamespace(ctx)
	return runParts(ctx, c, environment{
		log: withoutLogHandler(log), namespace: namespace,
		newFeatureClient: func() (*kube.Client, error) { return c, nil },
	}, parts)
}

// newRunFeatures returns the features of a program without a command line.
func newRunFeatures(ctx context.Context, c *kube.Client, parts []Part) (*features, error) {
	program := &feature.Program{
		Name: c.FieldManager(), Command: "run", Version: versions(), Watched: c.Namespaces(),
		Pages: feature.Pages{Flag: "--listen"}, IsDevelopment: os.Getenv(access.CheckVariable) != "",
	}
	program.Namespace, program.IsTest = access.CheckedNamespace(ctx)
	program.IsStrict = program.IsTest
	needs, made, err := checkParts(parts, program)
	if err != nil {
		return nil, err
	}
	needed, _, err := made.setFlags(nil)
	program.Needs.Access = append(slices.Clone(needs.Access), needed...)
	return &made, err
}

// environment is what a program has beside its parts and its client.
type environment struct {
	log *slog.Logger
	// listeners take requests to the program. Whoever opens the listeners closes them. The program serves them only while
	// it runs.
	listeners listeners
	// problems reports the problems of requests. It may be nil.
	problems *problems.Reporter
	// ownHandlers, ownMetrics and ownChecks are the fields Handlers, Metrics and ReadinessChecks of [Program]. They may be
	// nil.
	ownHandlers func(*controller.Runtime) map[string]http.Handler
	ownMetrics  func(io.Writer)
	ownChecks   map[string]func(context.Context) error
	// tracer is the Tracer of the [Program]. It may be nil.
	tracer wire.Tracer
	// namespace and pod are the fields of [controller.Runtime].
	namespace, pod string
	// election is the leader election of the program. It may be nil.
	election *leaderElection
	// newFeatureClient is the field NewClient of [feature.Host].
	newFeatureClient func() (*kube.Client, error)
	// features are those of the parts. Whoever makes them ends them. [runParts] makes them if this is nil.
	features *features
	// setVerbosity is the field SetVerbosity of [feature.Host].
	setVerbosity func(string) error
	// endFirstSync is called once the program has read and reconciled its objects for the first time. It may be nil.
	endFirstSync func()
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
// The end comes in this order. The program reports that it is not ready, and takes no new work. The parts finish what
// is under way, each within its grace. The services end. The listeners, which have answered until then, are closed. The
// streams end. Then the caller releases the lease, and ends the features.
func runParts(ctx context.Context, c *kube.Client, env environment, parts []Part) error {
	if env.features == nil {
		made, err := newRunFeatures(ctx, c, parts)
		if err != nil {
			return err
		}
		defer made.end()
		env.features = made
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newPartsRun(c, env, parts, cancel)
	defer r.cache.Close()
	if err := r.makePages(); err != nil {
		return err
	}
	if r.metrics != nil {
		r.registerMetrics()
		r.makeReadiness(ctx)
		defer r.pages.readiness.checks.End()
	}
	defer r.closeServers()
	// The context of the features ends before the servers, which wait for the readers of their pages.
	featuresCtx, endFeatures := context.WithCancel(context.WithoutCancel(ctx))
	defer endFeatures()
	if err := r.startFeatures(featuresCtx, ctx.Done()); err != nil {
		if ctx.Err() != nil {
			return nil // the program ends while a feature starts
		}
		return err
	}
	if r.metrics != nil {
		if err := r.joinMetrics(); err != nil {
			return err
		}
		r.servePages()
	}
	env.election.begin(ctx)
	env.election.waitForFirstAttempt(ctx)
	var logging sync.WaitGroup
	defer logging.Wait()
	defer cancel()
	logging.Go(func() { r.awaitFirstSync(ctx) })
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
