package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// run is one run of an operator in a namespace of its own.
type run struct {
	explorer  *explorer
	schedule  schedule.Schedule
	namespace string
	began     time.Time
	// folder holds the kubeconfig files of the processes.
	folder    string
	recording *history.Recording
	proxy     *faults.Proxy
	names     *history.Names
	output    *output

	// replicasMu guards the following fields up to released.
	replicasMu sync.Mutex
	replicas   []*replica
	// processCount counts the processes so far. replicaOfSession holds the number of the replica of each session.
	processCount     int
	replicaOfSession map[string]int
	// restartDue is true while a program that has crashed waits for its restart.
	restartDue bool
	// isHandingOver is true while a fault takes the lease from a leader.
	isHandingOver bool
	// released is the session whose lease was released last, because its process had ended.
	released string
	// outages counts the faults because of which the control plane may be down.
	outages atomic.Int32
	// acted is when the user or a fault did something last.
	acted time.Time

	// current is the index of the step that runs.
	current atomic.Int64

	traceMu sync.Mutex
	trace   []finding.Event

	outcome outcome
}

// outcome is the result of a run.
type outcome struct {
	// states are the objects at the rest after each step.
	states   []history.State
	history  history.History
	requests []proxy.Request
	// problem is the verdict that ended the run, or empty. differences are the differences after problemStep.
	problem     finding.Verdict
	problemStep int
	differences finding.Differences
	// isViolated is true if a check that must always hold has failed.
	isViolated bool
	// missed are the faults that did not happen.
	missed []faults.Fault
	// refused are the writes of the program that the API server found invalid, and which the program has
	// reported to the user.
	refused []string
	// notApplicable are the faults that the program gave no opportunity for.
	notApplicable []faults.Fault
	began         time.Time
	trace         []finding.Event
	deliveries    []proxy.Delivery
	// errorLine is the last line with an error in the log of the program, or empty.
	errorLine string
}

// patience is how long a run waits.
type patience struct {
	// window is how long nothing may happen at rest.
	window time.Duration
	// rest is how long the run waits for the rest after a step.
	rest time.Duration
	// heal is how long a wrong state may take to become right.
	heal time.Duration
	// delay is added to each request, for the slow reference.
	delay time.Duration
}

// judge compares the state at the rest after a step with what is expected. It returns no difference
// if nothing is expected.
type judge func(step int, state history.State) []finding.Difference

// run makes one run. An error means that the run could not be made. It is no verdict on the program.
func (e *explorer) run(ctx context.Context, s schedule.Schedule, wait patience, judge judge) (*outcome, error) {
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	r := &run{explorer: e, schedule: s, folder: folder, began: time.Now(), output: &output{}}
	if err := r.begin(ctx, wait); err != nil {
		return nil, errors.Join(err, r.end())
	}
	for i, step := range s.Steps {
		if err := r.runStep(ctx, i, step, wait, judge); err != nil {
			return nil, errors.Join(&stepError{i, step.Name, err}, r.end())
		}
		if r.outcome.problem != "" {
			break
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return &r.outcome, nil
}

// begin acquires the namespace of the run, and starts the recording, the proxy and the program.
func (r *run) begin(ctx context.Context, wait patience) error {
	name, isNew := r.explorer.namespaces.acquire()
	r.namespace, r.names = name, history.NewNames(name)
	r.recording = r.explorer.recorder.Record(name)
	if isNew {
		if err := r.explorer.namespaces.create(ctx, name); err != nil {
			return err
		}
	}
	if err := r.explorer.grant(ctx, r.namespace); err != nil {
		return err
	}
	var err error
	r.proxy, err = faults.New(faults.Options{
		Target: r.explorer.target(), Admin: r.explorer.options.Config, Namespace: r.namespace, Normalize: r.names.Normalize,
		Delay: wait.delay,
	})
	if err != nil {
		return err
	}
	return r.startReplicas(ctx)
}

// end ends the program and the run, and releases the namespace.
func (r *run) end() error {
	r.replicasMu.Lock()
	for _, p := range r.replicas {
		if p.process != nil {
			p.process.stop()
		}
	}
	r.stopLocked()
	r.replicasMu.Unlock()
	var removal error
	if r.proxy != nil {
		r.outcome.requests, r.outcome.deliveries = r.proxy.Requests(), r.proxy.Deliveries()
		r.explorer.recordOutside(r.outcome.requests)
		removal = removeCreated(r.proxy)
		r.proxy.Close()
	}
	r.outcome.history = r.recording.History()
	r.outcome.began, r.outcome.trace, r.outcome.errorLine = r.began, r.allEvents(), r.output.lastError()
	r.explorer.namespaces.release(r.namespace, r.recording, r.isNamespaceReusable())
	return removal
}

// isNamespaceReusable reports whether another run may use the namespace. What a binding of the account allows
// would be known to the server for a while after its deletion.
func (r *run) isNamespaceReusable() bool {
	return r.outcome.problem == "" && !faults.StopsComponents(r.schedule.Faults) && r.explorer.operator.account() == nil
}

// runStep makes one step of the user, with its faults, and judges the rest after the step.
func (r *run) runStep(ctx context.Context, i int, step schedule.Step, wait patience, judge judge) error {
	r.current.Store(int64(i))
	r.recording.BeginStep(i)
	if err := r.proxy.BeginStep(ctx, i); err != nil {
		return err
	}
	armed, err := r.armFaults(ctx, i, wait)
	defer armed.wait()
	if err != nil {
		return err
	}
	if err := r.injectBeforeStep(ctx, i, wait); err != nil {
		return err
	}
	if err := r.takeStep(ctx, step); err != nil {
		return err
	}
	r.acted = time.Now()
	if err := r.restartProgram(); err != nil { // after a crash in the step before
		return err
	}
	if err := r.waitForRest(ctx, wait); err != nil {
		return err
	}
	missed, err := armed.disarm()
	if err := r.recordHandOver(err); err != nil {
		return err
	}
	r.outcome.missed = append(r.outcome.missed, missed...)
	if r.hasFaultIn(i) {
		if err := r.injectAfterStep(ctx, i, wait); err != nil {
			return err
		}
		r.acted = time.Now()
		if err := r.waitForRest(ctx, wait); err != nil {
			return err
		}
	}
	return r.judgeStep(ctx, i, wait, judge)
}

// hasFaultIn reports whether a fault happens in a step.
func (r *run) hasFaultIn(step int) bool {
	return slices.ContainsFunc(r.schedule.Faults, func(f faults.Fault) bool { return f.StepIndex() == step })
}

// judgeStep compares the state at rest, and waits for a wrong state to become right.
func (r *run) judgeStep(ctx context.Context, i int, wait patience, judge judge) error {
	state := r.recording.State()
	r.outcome.states = append(r.outcome.states, state)
	if r.outcome.problem != "" || r.isDown() {
		return nil
	}
	check := func(state history.State) []finding.Difference {
		return append(judge(i, state), r.checkRest(i, state)...)
	}
	differences := check(state)
	for until := time.Now().Add(wait.heal); len(differences) > 0 && time.Now().Before(until); {
		if err := clock.SleepReal(ctx, wait.window); err != nil {
			return err
		}
		if err := r.catchUp(ctx); err != nil {
			return err
		}
		if differences = check(r.recording.State()); len(differences) == 0 && time.Since(until.Add(-wait.heal)) > lateAfter {
			r.recordProblem(finding.Late, i, nil)
		}
	}
	if len(differences) == 0 {
		return nil
	}
	if refused := r.refusedWrites(i); len(refused) > 0 && len(r.schedule.Faults) == 0 && i+1 < len(r.schedule.Steps) && r.hasReported(i) {
		// Some fields cannot change. The program has reported that, and the next step shows whether it recovers.
		r.outcome.refused = append(r.outcome.refused, refused...)
		return nil
	}
	if err := r.crashProgram("the program is restarted, to see whether that heals", true); err != nil {
		return err
	}
	if err := r.waitForRest(ctx, wait); err != nil {
		return err
	}
	switch state = r.recording.State(); {
	case len(check(state)) == 0:
		r.recordProblem(finding.NeedsRestart, i, differences)
	case len(judge(i, state)) == 0:
		r.recordProblem(finding.CheckFailed, i, differences)
	default:
		r.recordProblem(finding.Wrong, i, differences)
	}
	return nil
}

// lateAfter is the time after which a state that became right is late.
const lateAfter = 30 * time.Second

// recordProblem records the first problem of the run.
func (r *run) recordProblem(v finding.Verdict, step int, differences []finding.Difference) {
	if r.outcome.problem == "" {
		r.outcome.problem, r.outcome.problemStep, r.outcome.differences = v, step, differences
	}
}

// exitLines is how many lines of the log are shown for a program that ended by itself.
const exitLines = 5

// waitForRest returns when the run has come to rest, or records that it does not.
func (r *run) waitForRest(ctx context.Context, wait patience) error {
	for until := time.Now().Add(wait.rest); ; {
		if err := r.superviseReplicas(ctx); err != nil {
			return err
		}
		if err := r.exit(); err != nil {
			r.recordProblem(finding.Exited, int(r.current.Load()), []finding.Difference{{Object: r.explorer.operator.String(), Reason: fmt.Sprintf("the program ended by itself: %v; its last lines: %s", err, r.output.last(exitLines))}})
			return nil
		}
		if r.isUnsettled() && time.Now().Before(until) {
			r.acted = time.Now()
			if err := clock.SleepReal(ctx, pollInterval); err != nil {
				return err
			}
			continue
		}
		quiet, busy := r.quietTime()
		if !busy && quiet >= wait.window {
			if err := r.catchUp(ctx); err != nil {
				return err
			}
			if quiet, busy = r.quietTime(); !busy && quiet >= wait.window { // no news came
				return nil
			}
		}
		if time.Now().After(until) {
			r.recordProblem(finding.Busy, int(r.current.Load()), []finding.Difference{{Object: r.explorer.operator.String(), Reason: fmt.Sprintf("the run does not come to rest within %s: the last request was %s", wait.rest, r.lastRequest())}})
			return nil
		}
		if err := clock.SleepReal(ctx, min(max(wait.window-quiet, 10*time.Millisecond), wait.window)); err != nil {
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

// quietTime returns how long nothing has happened. busy reports that something is under way.
func (r *run) quietTime() (quiet time.Duration, busy bool) {
	activity := r.proxy.Activity()
	last := r.recording.LastChange()
	for _, t := range []time.Time{activity.LastRequest, activity.LastEvent, r.acted} {
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
func (r *run) takeStep(ctx context.Context, step schedule.Step) error {
	for _, raw := range step.Apply {
		object, err := r.explorer.decode(raw, r.namespace)
		if err != nil {
			return err
		}
		api, err := r.explorer.apiOf(object.GroupVersionKind(), r.namespace)
		if err != nil {
			return err
		}
		r.recordEvent(finding.Event{Lane: finding.User, To: finding.Server, Text: fmt.Sprintf("applies %s/%s", object.GetKind(), object.GetName())})
		if _, err := api.For(r.explorer.client.WithFieldManager(userManager), r.namespace).Apply(ctx, object); err != nil {
			return err
		}
	}
	for _, o := range step.Delete {
		r.recordEvent(finding.Event{Lane: finding.User, To: finding.Server, Text: "deletes " + o.String()})
		if err := r.explorer.delete(ctx, o, r.namespace); err != nil && !kube.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// userManager is the field manager of the user.
const userManager = "explorer-user"

// recordFault records a fault in the trace.
func (r *run) recordFault(text string) {
	r.recordEvent(finding.Event{Lane: finding.Operator, Text: text, Fault: true})
}

func (r *run) recordEvent(event finding.Event) {
	event.At, event.Step = time.Since(r.began), int(r.current.Load())
	r.traceMu.Lock()
	defer r.traceMu.Unlock()
	r.trace = append(r.trace, event)
}

// canonical returns JSON with sorted keys and without white space.
func canonical(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(text)
}
