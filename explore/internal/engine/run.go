package engine

import (
	"context"
	"errors"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// run is one run of an operator in a namespace of its own. It sets up the parts of the run, makes the steps of the user
// with their faults, and ends the parts.
type run struct {
	runner   *runner
	schedule finding.Schedule
	limits   waitLimits
	compare  compareState
	// folder is for the files of the run.
	folder string
	output *output
	trace  *trace
	// activity is what the run does now.
	activity *activity

	// The following fields are set by begin.

	namespace string
	names     *history.Names
	recording *history.Recording
	proxy     *faults.InjectingProxy
	// externalConnections are the connections to the external system. The field is nil if there are none.
	externalConnections *externalConnections
	replicas            *replicas
	quiet               *quietMeter
	rest                *restWaiter
	user                *userActor
	judge               *stepJudge
	actions             *runActions

	result runResult
}

// begin acquires the namespace of the run, and starts the recording, the proxy and the program.
func (r *run) begin(ctx context.Context) error {
	name, isNew := r.runner.namespaces.acquire()
	r.namespace, r.names = name, history.NewNames(name)
	r.recording = r.runner.recorder.Record(name)
	if isNew {
		if err := r.runner.namespaces.create(ctx, name); err != nil {
			return err
		}
	}
	if err := r.runner.permissions.grant(ctx, r.namespace); err != nil {
		return err
	}
	var err error
	r.proxy, err = faults.New(faults.Options{
		Target: r.runner.permissions.target(), Admin: r.runner.permissions.admin,
		Namespace: r.namespace, Normalize: r.names.Normalize,
		Delay: r.limits.delay,
	})
	if err != nil {
		return err
	}
	address := ""
	if r.runner.externalSystem.Address != "" {
		if r.externalConnections, err = newExternalConnections(r.runner.externalSystem.Address); err != nil {
			return err
		}
		address = r.externalConnections.Address()
	}
	releaseLease := func(ctx context.Context, lease string) error {
		return r.runner.cluster.releaseLease(ctx, r.namespace, lease)
	}
	r.replicas = newReplicas(r.runner.launcher, r.proxy, r.trace, r.runner.election,
		processSettings{
			namespace: r.namespace, folder: r.folder, output: r.output, relayAddress: address, webhooks: r.runner.webhooks,
		}, releaseLease)
	r.replicas.mayRestart = len(r.schedule.Faults) > 0
	r.makeParts()
	if err := r.replicas.start(ctx, r.schedule.Faults.NeedsStandby()); err != nil || !r.runner.servesCalls {
		return err
	}
	return r.waitForPublications(ctx)
}

// makeParts makes the parts that wait, act and judge.
func (r *run) makeParts() {
	n := r.runner
	r.quiet = &quietMeter{proxyActivity: r.proxy.Activity, lastChange: r.recording.LastChange}
	isDisturbed := func() bool { return false }
	var externalParts func() int
	if r.externalConnections != nil {
		r.quiet.lastPart, isDisturbed, externalParts = r.externalConnections.LastPart, r.externalConnections.IsDisturbing,
			r.externalConnections.Parts
	}
	reader := &stateReader{
		recording: r.recording, requests: r.proxy.Requests, canBeRefused: r.schedule.Faults.HasServerInterruption(),
		namespace: r.namespace, look: n.externalSystem.Look,
	}
	r.rest = &restWaiter{
		limits: r.limits, operator: n.launcher.String(), faults: r.schedule.Faults, replicas: r.replicas, quiet: r.quiet,
		catchUp:     reader.catchUp,
		isDisturbed: isDisturbed, requests: r.proxy.Requests, activity: r.activity, trace: r.trace, output: r.output,
		result: &r.result,
	}
	r.user = &userActor{
		cluster: n.cluster, namespace: r.namespace, trace: r.trace, restartProgram: r.replicas.restart,
		waitForReaction: r.quiet.waitForReaction,
	}
	r.judge = &stepJudge{
		limits: r.limits, schedule: r.schedule, compare: r.compare, cluster: n.cluster, options: n.options, checks: n.checks,
		explorationSteps: n.steps, history: r.recording.History, requests: r.proxy.Requests,
		catchUp: reader.catchUp, externalParts: externalParts,
		replicas: r.replicas, quiet: r.quiet, rest: r.rest, output: r.output, activity: r.activity, result: &r.result,
	}
	r.actions = &runActions{
		cluster: n.cluster, namespace: r.namespace, names: r.names, options: n.options, steps: r.schedule.Steps,
		proxy:   r.proxy,
		history: r.recording.History, catchUp: reader.catchUp, user: r.user, replicas: r.replicas, quiet: r.quiet,
		rest: r.rest, trace: r.trace,
		result: &r.result,
	}
}

const (
	// maxPublication is how long a program may take to publish its webhooks and conversions.
	maxPublication = 20 * time.Second
	// publicationQuiet is how long a program sends nothing after the publication of its webhooks and conversions.
	publicationQuiet = 500 * time.Millisecond
)

// waitForPublications waits until the program has published its webhooks and conversions, and is at rest. It gives up
// after some time, because the rest of the run shows what is wrong. A conversion may be there from the run before.
func (r *run) waitForPublications(ctx context.Context) error {
	for until := time.Now().Add(maxPublication); time.Now().Before(until); {
		quiet, isBusy := r.quiet.measure()
		hasBegun := faults.HasWebhooks(r.proxy.Created()) || !r.runner.hasWebhooks && len(r.proxy.Requests()) > 0
		if hasBegun && !isBusy && quiet >= publicationQuiet {
			return nil
		}
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// end ends the program and the run, and releases the namespace.
func (r *run) end() error {
	if r.replicas != nil {
		r.replicas.end()
	}
	if r.externalConnections != nil {
		r.externalConnections.Close()
	}
	var removal error
	if r.proxy != nil {
		r.result.requests, r.result.deliveries, r.result.observations = r.proxy.Requests(), r.proxy.Deliveries(),
			r.proxy.Observations()
		r.runner.results.addOutOfBoundsWrites(r.result.requests)
		// The context of the exploration may have ended.
		ctx, cancel := context.WithTimeout(context.Background(), maxRemoval)
		defer cancel()
		removal = r.proxy.RemoveCreated(ctx)
		r.proxy.Close()
	}
	r.result.history = r.recording.History()
	if r.replicas != nil {
		r.trace.addElections(r.replicas, r.result.requests)
		r.trace.addRequests(r.replicas, r.result.requests)
	}
	r.trace.addVersions(r.result.history.Versions, r.names)
	r.trace.addDeliveries(r.result.deliveries, r.names)
	r.result.began, r.result.trace, r.result.errorLines = r.trace.began, r.trace.all(), r.output.errorLines()
	r.runner.namespaces.release(r.namespace, r.recording, r.isNamespaceReusable())
	return removal
}

// isNamespaceReusable reports whether another run may use the namespace. What a binding of the account allows
// would be known to the server for a while after its deletion.
func (r *run) isNamespaceReusable() bool {
	return r.result.verdict == "" && !r.schedule.Faults.HasServerInterruption() && r.runner.permissions.account == nil
}

// runStep makes one step of the user, with its faults, and judges the rest after the step.
func (r *run) runStep(ctx context.Context, i int, step finding.Step) (err error) {
	defer func() { err = errors.Join(err, r.actions.endStep()) }()
	r.trace.setStep(i)
	r.recording.BeginStep(i)
	if err := r.proxy.BeginStep(ctx, i); err != nil {
		return err
	}
	if r.externalConnections != nil {
		r.externalConnections.BeginStep()
	}
	injector := newStepInjector(r.schedule.Faults, i, r.beginFaultStep)
	defer injector.end()
	if err := injector.arm(ctx); err != nil {
		return err
	}
	if err := injector.beforeStep(ctx); err != nil {
		return err
	}
	if err := r.user.takeStep(ctx, step); err != nil {
		return err
	}
	r.quiet.recordAct()
	if err := r.replicas.restart(); err != nil { // after a crash in the step before
		return err
	}
	if err := r.rest.waitForRest(ctx); err != nil {
		return err
	}
	missed, err := injector.disarm()
	if err := r.recordHandOver(err); err != nil {
		return err
	}
	r.result.missed = append(r.result.missed, missed...)
	if injector.hasFaults() {
		if err := injector.afterStep(ctx); err != nil {
			return err
		}
		r.quiet.recordAct()
		if err := r.rest.waitForRest(ctx); err != nil {
			return err
		}
	}
	if err := r.judge.waitForDeletion(ctx, i); err != nil {
		return err
	}
	return r.judge.judgeStep(ctx, i)
}

// beginFaultStep begins a step of the actions, and returns the run as the faults of the step see it. The channel over
// is closed when the step is over.
func (r *run) beginFaultStep(over <-chan struct{}) *faults.Run {
	r.actions.beginStep(over)
	first := r.schedule.Steps[0].Apply
	return &faults.Run{
		Cluster: r.runner.cluster, Actions: r.actions, Namespace: r.namespace, Folder: r.folder,
		SampleObjects: samplesOf(first, r.runner.cluster, r.names), SampleContents: first,
		Components: r.runner.components, Injector: r.proxy.Injector, ExternalConnections: r.externalConnectionsOrNil(),
	}
}

// externalConnectionsOrNil returns the connections to the external system. It returns a nil interface, and no nil
// pointer, if there are none.
func (r *run) externalConnectionsOrNil() faults.ExternalConnections {
	if r.externalConnections == nil {
		return nil
	}
	return r.externalConnections
}

// recordHandOver records a [handOverError] as the verdict of the run. It returns all other errors.
func (r *run) recordHandOver(err error) error {
	failed, ok := errors.AsType[*handOverError](err)
	if !ok {
		return err
	}
	r.result.recordVerdict(finding.Wrong, r.trace.currentStep(),
		[]finding.Difference{{Object: proxy.Leases, Reason: failed.text}})
	return nil
}
