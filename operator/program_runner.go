package operator

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/problems"
	"github.com/yare-go/yare/operator/internal/retention"
)

// programRunner runs the command run. It opens what the program serves, makes the environment of [runParts], and ends
// everything after the parts.
type programRunner struct {
	invocation
	line      *commandLine
	madeParts []Part
	needs     kube.Needs
	log       *slog.Logger
	config    *kube.Config
	// fence is nil without leader election.
	fence *lease.Fence
	// client passes the fence.
	client *kube.Client
	// retention is nil unless the program has permissions by Roles that its cleanups need.
	retention *retentionRun
	env       environment
}

// run opens what the program serves, runs the parts, and ends everything that it has opened. namespace is that of the
// configuration.
func (p *programRunner) run(ctx context.Context, namespace string) error {
	if err := p.connect(); err != nil {
		return err
	}
	defer p.end()
	p.makeEnvironment(namespace)
	if err := p.openPages(ctx); err != nil {
		return err
	}
	if err := p.makeElection(); err != nil {
		return err
	}
	return runParts(p.startRetention(ctx), p.client, p.env, p.madeParts)
}

// connect makes the clients of the program.
func (p *programRunner) connect() (err error) {
	unfenced := p.config.Clone()
	if p.line.election.isOn {
		p.fence = newFence(p.line.election.timing, p.config)
	}
	client, err := newFencedClient(p.config, p.fence)
	if err != nil {
		return err
	}
	p.client = p.line.inWatchedNamespaces(client.WithFieldManager(p.Name))
	p.env.newFeatureClient = func() (*kube.Client, error) {
		client, err := kube.NewClient(unfenced)
		if err != nil {
			return nil, err
		}
		return p.line.inWatchedNamespaces(client.WithFieldManager(p.Name)), nil
	}
	return nil
}

// makeEnvironment sets the fields of the environment for which nothing is opened.
func (p *programRunner) makeEnvironment(namespace string) {
	namespace, pod := ownPod(namespace)
	checker := access.NewChecker(p.needs, p.line.namespaces, namespace)
	p.env.namespace, p.env.pod = namespace, pod
	p.env.log, p.env.tracer = p.log, p.Tracer
	p.env.problems = problems.NewReporter(p.log, p.config.Host, ownCommand(p.file)+" crd", p.needs, checker)
	p.env.ownHandlers, p.env.ownMetrics, p.env.ownChecks = p.Handlers, p.Metrics, p.ReadinessChecks
	program := p.env.features.program
	program.Needs, program.Namespace, program.Pod = p.needs, namespace, pod
}

// openPages opens the addresses of the pages.
func (p *programRunner) openPages(ctx context.Context) (err error) {
	p.env.listeners, err = p.line.listen.open(ctx, p.log)
	return err
}

// makeElection makes the election of the program, if it has one. [runParts] begins the election.
func (p *programRunner) makeElection() (err error) {
	if p.fence == nil {
		return nil
	}
	flags := p.line.election
	p.env.election, err = newElection(candidacy{
		fence: p.fence, program: p.Name, leaseName: cmp.Or(flags.name, p.Name),
		leaseNamespace: cmp.Or(flags.namespace, p.env.namespace),
		kindsHash:      kindsHashOf(p.needs.Reconciles), pod: p.env.pod, watched: p.client.Namespaces(), log: p.log,
		problems: p.env.problems, exit: p.exit,
	})
	return err
}

// startRetention begins to keep the permissions of the program in namespaces whose objects have its finalizers. It
// returns the context for the parts.
func (p *programRunner) startRetention(ctx context.Context) context.Context {
	namespaces := retainedNamespaces(p.madeParts, p.line.namespaces, p.env.namespace)
	if len(namespaces) == 0 {
		return ctx
	}
	keeper := retention.New(retention.Config{
		Client: p.client.AllNamespaces(), Log: p.log, Namespaces: namespaces, Reconciled: p.needs.Reconciles,
		Finalizers: p.needs.Finalizers, Command: ownCommand(p.file),
	})
	p.retention = startRetention(ctx, keeper, p.env.elected())
	return access.WithRetainer(ctx, keeper)
}

// end ends what the program has opened. The parts have ended.
func (p *programRunner) end() {
	if p.retention != nil {
		p.retention.end()
	}
	// The lease is released after everything else, when nothing is left that could write.
	if p.env.election != nil {
		p.env.election.end()
	}
	// A feature may answer API servers until the lease is released and they have found other replicas.
	p.env.features.end()
	p.env.listeners.close()
}
