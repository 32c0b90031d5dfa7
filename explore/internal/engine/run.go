package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// run is one run of an operator in a namespace of its own.
type run struct {
	runner    *runner
	schedule  finding.Schedule
	namespace string
	// folder is for the files of the run.
	folder    string
	recording *history.Recording
	proxy     *faults.Proxy
	names     *history.Names
	output    *output
	trace     *trace
	replicas  *replicas
	// outside are the connections to the external system. It is nil if there is none.
	outside *outsideConnections
	// outages counts the faults because of which the control plane may be down.
	outages atomic.Int32
	// preventions counts the faults because of which the run is not at rest.
	preventions atomic.Int32
	// acted is when the user or a fault did something last.
	acted time.Time
	// activity is what the run does now.
	activity *activity
	// releases are called when the step has ended, the last one first.
	releases []func() error

	result runResult
}

// begin acquires the namespace of the run, and starts the recording, the proxy and the program.
func (r *run) begin(ctx context.Context, limits waitLimits) error {
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
		Target: r.runner.permissions.target(), Admin: r.runner.permissions.admin, Namespace: r.namespace, Normalize: r.names.Normalize,
		Delay: limits.delay,
	})
	if err != nil {
		return err
	}
	address := ""
	if r.runner.outside.Address != "" {
		if r.outside, err = newOutsideConnections(r.runner.outside.Address); err != nil {
			return err
		}
		address = r.outside.Address()
	}
	r.replicas = newReplicas(r.runner.launcher, r.proxy, r.trace, r.runner.election,
		processSettings{namespace: r.namespace, folder: r.folder, output: r.output, outside: address, webhooks: r.runner.webhooks}, r.releaseLease, &r.outages)
	r.replicas.mayRestart = len(r.schedule.Faults) > 0
	if err := r.replicas.start(ctx, faults.NeedsStandby(r.schedule.Faults)); err != nil || !r.runner.servesCalls {
		return err
	}
	return r.waitForPublications(ctx)
}

const (
	// maxPublication is how long a program may take to publish its webhooks and conversions.
	maxPublication = 20 * time.Second
	// publicationQuiet is how long a program sends nothing after the publication of its webhooks and conversions.
	publicationQuiet = 500 * time.Millisecond
)

// waitForPublications waits until the program has published its webhooks and conversions, and is at rest. It gives up after some
// time, because the rest of the run shows what is wrong. A conversion may be there from the run before.
func (r *run) waitForPublications(ctx context.Context) error {
	for until := time.Now().Add(maxPublication); time.Now().Before(until); {
		quiet, isBusy := r.quietTime()
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

// release calls the functions of [faults.Run.AtEnd].
func (r *run) release() error {
	var errs []error
	for _, release := range slices.Backward(r.releases) {
		errs = append(errs, release())
	}
	r.releases = nil
	return errors.Join(errs...)
}

// releaseLease releases the Lease of a name, as a leader that ends in order does.
func (r *run) releaseLease(ctx context.Context, name string) error {
	resource, err := r.runner.cluster.resource(proxy.Leases)
	if err != nil {
		return err
	}
	api := kube.Dynamic(r.runner.cluster.client.WithFieldManager(faults.ForeignManager), resource, r.namespace)
	_, err = api.Patch(ctx, name, kube.MergePatch(map[string]any{"spec": map[string]any{"holderIdentity": "", "leaseDurationSeconds": 1}}))
	return kube.IgnoreNotFound(err)
}

// end ends the program and the run, and releases the namespace.
func (r *run) end() error {
	if r.replicas != nil {
		r.replicas.end()
	}
	if r.outside != nil {
		r.outside.Close()
	}
	var removal error
	if r.proxy != nil {
		r.result.requests, r.result.deliveries, r.result.observations = r.proxy.Requests(), r.proxy.Deliveries(), r.proxy.Observations()
		r.runner.results.addOutsideWrites(r.result.requests)
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
	r.result.began, r.result.trace, r.result.errorLine = r.trace.began, r.trace.all(), r.output.lastError()
	r.runner.namespaces.release(r.namespace, r.recording, r.isNamespaceReusable())
	return removal
}

// isNamespaceReusable reports whether another run may use the namespace. What a binding of the account allows
// would be known to the server for a while after its deletion.
func (r *run) isNamespaceReusable() bool {
	return r.result.verdict == "" && !faults.InterruptsServer(r.schedule.Faults) && r.runner.permissions.account == nil
}

// runStep makes one step of the user, with its faults, and judges the rest after the step.
func (r *run) runStep(ctx context.Context, i int, step finding.Step, limits waitLimits, compare compareState) (err error) {
	defer func() { err = errors.Join(err, r.release()) }()
	r.trace.setStep(i)
	r.recording.BeginStep(i)
	if err := r.proxy.BeginStep(ctx, i); err != nil {
		return err
	}
	if r.outside != nil {
		r.outside.BeginStep()
	}
	inject := newStepInjector(r.schedule.Faults, i, func(over <-chan struct{}) *faults.Run { return r.faultRun(limits, over) })
	defer inject.end()
	if err := inject.arm(ctx); err != nil {
		return err
	}
	if err := inject.beforeStep(ctx); err != nil {
		return err
	}
	if err := r.takeStep(ctx, step); err != nil {
		return err
	}
	r.acted = time.Now()
	if err := r.replicas.restart(); err != nil { // after a crash in the step before
		return err
	}
	if err := r.waitForRest(ctx, limits); err != nil {
		return err
	}
	missed, err := inject.disarm()
	if err := r.recordHandOver(err); err != nil {
		return err
	}
	r.result.missed = append(r.result.missed, missed...)
	if inject.hasFaults() {
		if err := inject.afterStep(ctx); err != nil {
			return err
		}
		r.acted = time.Now()
		if err := r.waitForRest(ctx, limits); err != nil {
			return err
		}
	}
	if err := r.waitUntilGone(ctx, i, limits); err != nil {
		return err
	}
	return r.compareStep(ctx, i, limits, compare)
}

// goneWait is how long objects may take to go after the user has deleted all samples.
const goneWait = 12 * time.Second

// waitUntilGone waits until nothing is left after a step that deletes all samples in a run that the rule about that
// judges, and for goneWait at most.
func (r *run) waitUntilGone(ctx context.Context, i int, limits waitLimits) error {
	steps, err := ruleSteps(r.runner.cluster, r.schedule.Steps)
	if err != nil || i != len(steps)-1 || r.result.verdict != "" || !rules.CanJudgeDeletion(r.schedule.Faults) || !rules.DeletesAll(steps, i) {
		return err
	}
	for until := time.Now().Add(max(goneWait, limits.converge)); time.Now().Before(until); {
		view := history.NewView(r.recording.History(), r.runner.options)
		if len(rules.LeftObjects(view, view.State(), steps)) == 0 {
			return nil
		}
		if err := clock.SleepReal(ctx, min(limits.window, 500*time.Millisecond)); err != nil {
			return err
		}
		if err := r.catchUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pace waits until the program has answered a change of the user, and has been quiet for a moment.
func (r *run) pace(ctx context.Context) error {
	const atLeast, quietFor, atMost = 60 * time.Millisecond, 60 * time.Millisecond, time.Second
	for began := time.Now(); ; {
		if err := clock.SleepReal(ctx, atLeast); err != nil {
			return err
		}
		quiet, isBusy := r.quietTime()
		if !isBusy && quiet >= quietFor || time.Since(began) > atMost {
			return nil
		}
	}
}

// compareStep compares the state at rest, and waits for a wrong state to become right.
func (r *run) compareStep(ctx context.Context, i int, limits waitLimits, compare compareState) error {
	r.result.states = append(r.result.states, r.recording.State())
	if r.outside != nil {
		r.result.outsideParts = append(r.result.outsideParts, r.outside.Parts())
	}
	if r.result.verdict != "" || r.replicas.isDown() {
		return nil
	}
	if faults.OutlastsStep(r.schedule.Faults, i) {
		return nil // the next step shows whether the program recovers
	}
	check := func(state history.State) []finding.Difference {
		return append(r.compare(i, state, compare), r.runner.checks.checkRest(i, i == len(r.schedule.Steps)-1, state)...)
	}
	differences, err := r.waitForHealing(ctx, i, limits, check)
	if err != nil {
		return err
	}
	if write, ok := r.abandonedWrite(i); ok && len(differences) > 0 {
		if differences, err = r.waitForRequeue(ctx, differences, limits, check); err != nil || len(differences) == 0 {
			return err
		}
		r.recordVerdict(finding.GaveUp, i, append([]finding.Difference{write}, differences...))
		return nil
	}
	if len(differences) == 0 {
		return nil
	}
	if refused := r.refusedWrites(i); len(refused) > 0 && len(r.schedule.Faults) == 0 && i+1 < len(r.schedule.Steps) && r.hasReported(i) {
		// Some fields cannot change. The program has reported that, and the next step shows whether it recovers.
		r.result.refused = append(r.result.refused, refused...)
		return nil
	}
	if err := r.replicas.crash("the program is restarted, to see whether the state becomes right", true); err != nil {
		return err
	}
	if err := r.waitForRest(ctx, limits); err != nil {
		return err
	}
	for until := time.Now().Add(min(limits.converge, restartedConverge)); len(check(r.recording.State())) > 0 && time.Now().Before(until); {
		if err := clock.SleepReal(ctx, limits.window); err != nil { // a busy machine starts a program late
			return err
		}
	}
	switch state := r.recording.State(); {
	case len(check(state)) == 0:
		r.recordVerdict(finding.NeedsRestart, i, differences)
	case len(r.compare(i, state, compare)) == 0:
		r.recordVerdict(finding.CheckFailed, i, differences)
	default:
		r.recordVerdict(finding.Wrong, i, differences)
	}
	return nil
}

// waitForHealing waits for a wrong state to become right, and returns the differences that stay.
func (r *run) waitForHealing(ctx context.Context, i int, limits waitLimits, check func(history.State) []finding.Difference) ([]finding.Difference, error) {
	differences := check(r.recording.State())
	began, limit := time.Now(), limits.converge
	if slices.ContainsFunc(r.schedule.Faults, faults.Fault.IsDenial) {
		limit = min(max(limit, minDenialHealing), maxDenialHealing)
	}
	r.activity.setWait("healing", began.Add(limit))
	defer r.activity.endWait()
	for len(differences) > 0 && time.Since(began) < limit {
		if err := clock.SleepReal(ctx, limits.window); err != nil {
			return nil, err
		}
		if err := r.catchUp(ctx); err != nil {
			return nil, err
		}
		if differences = check(r.recording.State()); len(differences) == 0 && time.Since(began) > lateAfter {
			r.recordVerdict(finding.Late, i, nil)
		}
	}
	return differences, nil
}

// minDenialHealing and maxDenialHealing bound how long a program may take to make a write again that was denied. A back-off
// that doubles its waits may wait for as long again as the write was denied, which is some seconds.
const minDenialHealing, maxDenialHealing = 15 * time.Second, 30 * time.Second

// waitForRequeue lets time pass for a program whose clock can be moved, so that its next reconcile comes, and returns the
// differences that stay.
func (r *run) waitForRequeue(ctx context.Context, differences []finding.Difference, limits waitLimits, check func(history.State) []finding.Difference) ([]finding.Difference, error) {
	if advanced, err := r.replicas.advanceClock(ctx); err != nil || !advanced {
		return differences, err
	}
	r.acted = time.Now()
	if err := r.waitForRest(ctx, limits); err != nil {
		return nil, err
	}
	return check(r.recording.State()), nil
}

// abandonedWrite returns a write that a fault has denied until it passed by itself or the user changed the sample, and that
// the program has not made again. It reports whether there is such a write.
func (r *run) abandonedWrite(step int) (finding.Difference, bool) {
	requests := r.proxy.Requests()
	for _, f := range r.schedule.Faults {
		if !f.IsDenial() || f.StepIndex() > step {
			continue
		}
		last, code, count := time.Time{}, 0, 0
		for _, request := range requests {
			if request.Fault == string(f.Kind) {
				last, code, count = request.Began, request.Code, count+1
			}
		}
		isTriedAgain := slices.ContainsFunc(requests, func(request proxy.RequestRecord) bool {
			return request.Fault == "" && f.IsSameWrite(request.Point) && request.Began.After(last)
		})
		if count > 0 && !isTriedAgain {
			return finding.Difference{
				Object: f.Target().String(),
				Reason: fmt.Sprintf("The write was denied with %d (%s). It would be accepted now, but the program has not made it again. An error of a write must lead to another reconcile. Denied writes: %d.",
					code, f.Kind, count),
			}, true
		}
	}
	return finding.Difference{}, false
}

// compare compares the state at the rest after a step. Children that a clone of a sample lacks are no difference if the program
// has reported why.
func (r *run) compare(i int, state history.State, compare compareState) []finding.Difference {
	differences := compare(i, state)
	if r.schedule.Comparison != finding.CompareChildren {
		return differences
	}
	return slices.DeleteFunc(differences, func(d finding.Difference) bool {
		_, name, _ := strings.Cut(d.Object, "/")
		return d.Path != ownersPath && hasReportedMissing(name, state, r.output.errorLines())
	})
}

// restartedConverge is how long the state may take to become right after the program was restarted.
const restartedConverge = 5 * time.Second

// lateAfter is a time limit: a state that becomes right after more time is late.
const lateAfter = 30 * time.Second

// recordVerdict records the first verdict of the run.
func (r *run) recordVerdict(v finding.Verdict, step int, differences []finding.Difference) {
	if r.result.verdict == "" {
		r.result.verdict, r.result.verdictStep, r.result.differences = v, step, differences
	}
}

// exitLines is how many lines of the log are shown for a program that ended by itself.
const exitLines = 20

// waitForRest returns when the run has come to rest, or records that it does not.
func (r *run) waitForRest(ctx context.Context, limits waitLimits) error {
	until := time.Now().Add(limits.rest)
	r.activity.setWait("rest", until)
	defer r.activity.endWait()
	for {
		if err := r.replicas.supervise(ctx); err != nil {
			return err
		}
		isWaiting, err := r.replicas.restartFailedStarts()
		if err != nil {
			return err
		}
		if err := r.replicas.exit(); err != nil {
			r.recordVerdict(finding.Exited, r.trace.currentStep(), []finding.Difference{{Object: r.runner.launcher.String(), Reason: fmt.Sprintf("the program ended by itself: %v; its last lines: %s", err, r.output.last(exitLines))}})
			return nil
		}
		isDisturbed := r.outside != nil && r.outside.IsDisturbing()
		if (isWaiting || isDisturbed || r.preventions.Load() > 0 || r.replicas.isWorking() || r.replicas.isRestPrevented()) && time.Now().Before(until) {
			r.acted = time.Now()
			if err := clock.SleepReal(ctx, pollInterval); err != nil {
				return err
			}
			continue
		}
		quiet, busy := r.quietTime()
		if !busy && quiet >= limits.window {
			if err := r.catchUp(ctx); err != nil {
				return err
			}
			if quiet, busy = r.quietTime(); !busy && quiet >= limits.window { // nothing has happened meanwhile
				return nil
			}
		}
		if time.Now().After(until) {
			if faults.OutlastsStep(r.schedule.Faults, r.trace.currentStep()) {
				return nil // the program tries the denied write again and again
			}
			r.recordVerdict(finding.Busy, r.trace.currentStep(), []finding.Difference{{Object: r.runner.launcher.String(), Reason: fmt.Sprintf("the run does not come to rest within %s: the last request was %s", limits.rest, r.lastRequest())}})
			return nil
		}
		if err := clock.SleepReal(ctx, min(max(limits.window-quiet, 10*time.Millisecond), limits.window)); err != nil {
			return err
		}
	}
}

// writtenResources returns the resources that the program has written.
func (r *run) writtenResources() (written []string) {
	for _, request := range r.proxy.Requests() {
		if p := request.Point; p.IsWrite() && !slices.Contains(written, p.Resource) {
			written = append(written, p.Resource)
		}
	}
	return written
}

// quietTime returns how long nothing has happened. It reports whether something is under way.
func (r *run) quietTime() (quiet time.Duration, busy bool) {
	activity := r.proxy.Activity()
	last := r.recording.LastChange()
	times := []time.Time{activity.LastRequest, activity.LastEvent, r.acted}
	if r.outside != nil {
		times = append(times, r.outside.LastPart())
	}
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return time.Since(last), activity.InFlight > 0 || activity.StreamsBehind > 0 && activity.Held == 0
}

func (r *run) lastRequest() string {
	requests := r.proxy.Requests()
	if len(requests) == 0 {
		return "none"
	}
	return requests[len(requests)-1].Point.String()
}

// takeStep makes the changes of the user in a step.
func (r *run) takeStep(ctx context.Context, step finding.Step) error {
	for _, raw := range step.Apply {
		object, err := r.runner.cluster.decode(raw, r.namespace)
		if err != nil {
			return err
		}
		api, err := r.runner.cluster.APIOf(object.GroupVersionKind(), r.namespace)
		if err != nil {
			return err
		}
		r.trace.record(finding.Event{Lane: finding.User, To: finding.Server, Text: fmt.Sprintf("applies %s/%s", object.GetKind(), object.GetName())})
		if err := r.retryUnanswered(ctx, func() error { return applyAsUser(ctx, api, object) }); err != nil {
			return err
		}
		if step.IsPaced {
			if err := r.pace(ctx); err != nil {
				return err
			}
		}
	}
	for _, o := range step.Delete {
		r.trace.record(finding.Event{Lane: finding.User, To: finding.Server, Text: "deletes " + o.String()})
		resource, err := r.runner.cluster.resource(o.Resource)
		if err != nil {
			return err
		}
		api := kube.Dynamic(r.runner.cluster.client, resource, r.namespace)
		err = r.retryUnanswered(ctx, func() error { return kube.IgnoreNotFound(api.Delete(ctx, o.Name)) })
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxUserRetry is how long the user tries a request again that a webhook or a conversion has not answered.
	maxUserRetry = 20 * time.Second
	// userRetryInterval is the time between two tries of the user.
	userRetryInterval = 200 * time.Millisecond
)

// retryUnanswered makes a request of the user, and again while a webhook or a conversion does not answer. A program that waits for its restart
// is started before, because the program itself may have to answer.
func (r *run) retryUnanswered(ctx context.Context, request func() error) error {
	for until := time.Now().Add(maxUserRetry); ; {
		err := request()
		if !isUnanswered(err) || time.Now().After(until) {
			return err
		}
		r.trace.record(finding.Event{Lane: finding.Server, To: finding.User, Text: "refuses the request, because a webhook or a conversion does not answer"})
		if err := r.replicas.restart(); err != nil {
			return err
		}
		if err := clock.SleepReal(ctx, userRetryInterval); err != nil {
			return err
		}
	}
}

// isUnanswered reports whether the API server has refused a request because a webhook or a conversion has not answered as it
// should.
func isUnanswered(err error) bool {
	answer, ok := kube.AsError(err)
	if !ok || answer.Code != http.StatusInternalServerError {
		return false
	}
	return strings.Contains(err.Error(), "failed calling webhook") || strings.Contains(err.Error(), "conversion webhook for")
}

// waitUntilServing waits until the API server answers a read that needs etcd.
func (r *run) waitUntilServing(ctx context.Context) error {
	for {
		_, err := kube.Everywhere[corev1.Namespace](r.runner.cluster.client).Get(ctx, r.namespace)
		if err == nil {
			r.trace.record(finding.Event{Lane: finding.Server, Text: "serves again"})
			return nil
		}
		if waited := clock.SleepReal(ctx, pollInterval); waited != nil {
			return fmt.Errorf("the control plane does not serve again within %s: %w", faults.MaxReturn, err)
		}
	}
}

// catchUp waits until the recorder has all objects that the server has. The server may refuse requests for a time in a run whose
// faults interrupt it.
func (r *run) catchUp(ctx context.Context) error {
	written := r.writtenResources()
	for until := time.Now().Add(faults.MaxReturn); ; {
		err := r.recording.CatchUp(ctx, written...)
		if err == nil {
			return r.lookOutside(ctx)
		}
		if !faults.InterruptsServer(r.schedule.Faults) || time.Now().After(until) {
			return err
		}
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// lookOutside records what the run has in the external system.
func (r *run) lookOutside(ctx context.Context) error {
	look := r.runner.outside.Look
	if look == nil {
		return nil
	}
	text, err := look(ctx, r.namespace)
	if err != nil {
		return fmt.Errorf("look at the external system: %w", err)
	}
	r.recording.RecordOutside(text)
	return nil
}

// recordHandOver records a [handOverError] as the verdict of the run. It returns all other errors.
func (r *run) recordHandOver(err error) error {
	failed, ok := errors.AsType[*handOverError](err)
	if !ok {
		return err
	}
	r.recordVerdict(finding.Wrong, r.trace.currentStep(), []finding.Difference{{Object: proxy.Leases, Reason: failed.text}})
	return nil
}

// refusedWrites returns the writes of the program in a step that the API server found invalid: as a
// rule, changes of fields that cannot change.
func (r *run) refusedWrites(step int) (writes []string) {
	for _, request := range r.proxy.Requests() {
		isRefused := request.Point.IsWrite() && request.Code == http.StatusUnprocessableEntity && request.Fault == ""
		if write := request.String(); isRefused && request.Point.Step == step && !slices.Contains(writes, write) {
			writes = append(writes, write)
		}
	}
	return writes
}

// hasReported reports whether the program has reported something to its user in a step: by an Event, or by
// another status of an object that the user has applied.
func (r *run) hasReported(step int) bool {
	h, before := r.recording.History(), 0
	for _, v := range h.Versions {
		if v.Step < step {
			before++
		} else if v.Step == step && v.Resource == "events" && !history.IsControlPlane(v.Manager) {
			return true
		}
	}
	return slices.ContainsFunc(history.Changes(h, before, r.runner.options), func(d finding.Difference) bool {
		resource, _, _ := strings.Cut(d.Object, "/")
		isOfStatus := strings.HasPrefix(d.Path, "status.") && d.Path != "status.observedGeneration"
		return isOfStatus && r.runner.cluster.appliesKind(r.runner.steps, resource)
	})
}

// samples returns the objects that the user applies in the first step, with normalized names.
func (r *run) samples() (all []faults.Object) {
	for _, raw := range r.schedule.Steps[0].Apply {
		if o, err := r.runner.cluster.objectOf(raw); err == nil { // the step has applied the object
			o.Name = r.names.Normalize(o.Name)
			all = append(all, o)
		}
	}
	return all
}

// faultedOutside returns the connections to the external system, or nil.
func (r *run) faultedOutside() faults.Outside {
	if r.outside == nil {
		return nil
	}
	return r.outside
}

// faultRun returns what faults do to the run. The channel over is closed when the step is over.
func (r *run) faultRun(limits waitLimits, over <-chan struct{}) *faults.Run {
	waitForRest := func(ctx context.Context) error {
		r.acted = time.Now()
		return r.waitForRest(ctx, limits)
	}
	return &faults.Run{
		Cluster: r.runner.cluster, Namespace: r.namespace, Folder: r.folder, Sample: firstSample(r.schedule.Steps),
		Components: r.runner.components, Injector: r.proxy.Injector, Outside: r.faultedOutside(),
		SampleContents: r.schedule.Steps[0].Apply,
		Object: func(ctx context.Context, o faults.Object) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error) {
			return r.runner.cluster.find(ctx, o, r.namespace, r.names)
		},
		Samples:    r.samples(),
		IsLastStep: func(step int) bool { return step == len(r.schedule.Steps)-1 },
		Objects: func(ctx context.Context) (all []faults.FoundObject, err error) {
			if err := r.catchUp(ctx); err != nil {
				return nil, err
			}
			for _, v := range r.recording.State().Objects() {
				all = append(all, faults.FoundObject{Object: faults.Object{Resource: v.Resource, Name: r.names.Normalize(v.Name)}, Content: v.Content()})
			}
			return all, nil
		},
		Created:      r.proxy.Created,
		AtEnd:        func(release func() error) { r.releases = append(r.releases, release) },
		TakeStep:     func(ctx context.Context, step int) error { return r.takeStep(ctx, r.schedule.Steps[step]) },
		CrashProgram: r.replicas.crash, RestartProgram: r.replicas.restart, AdvanceClock: r.replicas.advanceClock,
		HandOver:    func(a *faults.Armed, isKilled bool) error { return r.replicas.handOver(a, isKilled, over) },
		WaitForRest: waitForRest,
		ExpectNoChange: func(ctx context.Context, act func() error) error {
			before := len(r.recording.Versions())
			if err := act(); err != nil {
				return err
			}
			if err := waitForRest(ctx); err != nil {
				return err
			}
			if changes := history.Changes(r.recording.History(), before, r.runner.options); len(changes) > 0 {
				r.recordVerdict(finding.ChangesAtRest, r.trace.currentStep(), changes)
			}
			return nil
		},
		Outage: func(ctx context.Context, work func() error) error {
			r.outages.Add(1)
			defer r.outages.Add(-1)
			if err := work(); err != nil {
				return err
			}
			return r.waitUntilServing(ctx)
		},
		RecordReread: func(o faults.Object, path, reason string) {
			object := o.Resource + "/" + r.names.Normalize(o.Name)
			r.recordVerdict(finding.Reread, r.trace.currentStep(), []finding.Difference{{Object: object, Path: path, Reason: reason}})
		},
		RecordFault:  r.trace.recordFault,
		RecordMissed: func(f faults.Fault) { r.result.missed = append(r.result.missed, f) },
		RecordNotApplicable: func(f faults.Fault, reason string) {
			r.result.notApplicable = append(r.result.notApplicable, notApplicable{f, reason})
		},
		PreventRest: func(work func() error) error {
			r.preventions.Add(1)
			defer r.preventions.Add(-1)
			return work()
		},
	}
}
