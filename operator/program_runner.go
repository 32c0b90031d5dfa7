package operator

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
)

// programStart is a program between its command line and its run. It opens what the program serves, and makes the environment of
// [runParts].
type programStart struct {
	invocation
	line   *commandLine
	parts  []Part
	needs  kube.Needs
	log    *slog.Logger
	config *kube.Config
	// fence is nil without leader election.
	fence *lease.Fence
	// client passes the fence.
	client *kube.Client
	env    environment
}

// run opens what the program serves, takes part in the election of the leader, runs the parts, and ends everything that it has
// opened. namespace is that of the configuration.
func (p *programStart) run(ctx context.Context, namespace string) error {
	if err := p.connect(); err != nil {
		return err
	}
	defer p.end()
	p.makeEnvironment(namespace)
	if err := p.openPages(ctx); err != nil {
		return err
	}
	if err := p.openWebhooks(ctx); err != nil {
		return err
	}
	if err := p.startElection(ctx); err != nil {
		return err
	}
	return runParts(ctx, p.client, p.env, p.parts)
}

// connect makes the clients of the program.
func (p *programStart) connect() (err error) {
	unfenced := p.config.Clone()
	if p.line.election.isOn {
		p.fence = newFence(p.line.election.timing, p.config)
	}
	client, err := newFencedClient(p.config, p.fence)
	if err != nil {
		return err
	}
	p.client = p.line.addScope(client.WithFieldManager(p.Name))
	if hasWebhooksOrConverters(p.parts) {
		if client, err = kube.NewClient(unfenced); err != nil {
			return err
		}
		p.env.unfencedClient = p.line.addScope(client.WithFieldManager(p.Name))
	}
	return nil
}

// makeEnvironment sets the fields of the environment for which nothing is opened.
func (p *programStart) makeEnvironment(namespace string) {
	namespace, pod := ownPod(namespace)
	checker := access.NewChecker(p.needs, p.line.namespaces, namespace)
	p.env.namespace, p.env.pod = namespace, pod
	p.env.log, p.env.tracer = p.log, p.Tracer
	p.env.problems = newProblemReporter(p.log, p.config.Host, ownCommand(p.file)+" crd", p.needs, checker)
	p.env.handlers, p.env.metrics = p.Handlers, p.Metrics
	if os.Getenv(access.CheckVariable) != "" {
		p.env.mode = developmentMode
	}
}

// openPages opens the addresses of the pages, and the live page.
func (p *programStart) openPages(ctx context.Context) (err error) {
	listen := p.line.listen
	if p.env.listeners, err = listen.open(ctx, p.parts, p.config, p.env.problems, p.log); err != nil {
		return err
	}
	page := livePageSettings{isOn: listen.isLivePageOn, isLoopback: listen.secureAddress == "", program: p.Name, log: p.log}
	if p.env.mode == developmentMode {
		page.socket = os.Getenv(livePageSocketVariable)
	}
	p.env.livePage, err = openLivePageOf(ctx, p.parts, page)
	return err
}

// openWebhooks opens the address of the webhooks.
func (p *programStart) openWebhooks(ctx context.Context) (err error) {
	p.env.webhooks, err = openWebhooksOf(ctx, p.parts, webhookSettings{
		flags: p.line.webhooks, program: p.Name, namespace: p.env.namespace, pod: p.env.pod, watched: p.client.Namespaces(), mode: p.env.mode, log: p.log,
	})
	return err
}

// startElection makes the program a candidate for its Lease, if the program has leader election.
func (p *programStart) startElection(ctx context.Context) (err error) {
	if p.fence == nil {
		return nil
	}
	flags := p.line.election
	p.env.election, err = startElection(ctx, candidacy{
		fence: p.fence, program: p.Name, leaseName: cmp.Or(flags.name, p.Name), leaseNamespace: cmp.Or(flags.namespace, p.env.namespace),
		kindsHash: kindsHashOf(p.needs.Reconciles), pod: p.env.pod, watched: p.client.Namespaces(), log: p.log, problems: p.env.problems, exit: p.exit,
	})
	return err
}

// end ends what the program has opened. The parts have ended.
func (p *programStart) end() {
	// The lease is released after everything else, when nothing is left that could write.
	if p.env.election != nil {
		p.env.election.end()
	}
	// The webhooks answer until the lease is released and the API servers have found other replicas.
	if p.env.webhooks != nil {
		p.env.webhooks.end()
	}
	if p.env.livePage != nil {
		p.env.livePage.end()
	}
	p.env.listeners.close()
}
