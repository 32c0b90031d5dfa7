package explore

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/explore/faults"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// armedFaults are the faults of one step of a run.
type armedFaults struct {
	run  *run
	all  []armedFault
	over chan struct{}
	// running counts the goroutines that wait for crashes.
	running sync.WaitGroup

	mu  sync.Mutex
	err error
	// problem is the problem that a fault has shown. It is empty if all is well.
	problem string
}

// armedFault is one armed fault of a step.
type armedFault struct {
	*faults.Armed
	fault schedule.Fault
}

// armFaults arms the faults of a step that requests and streams of the program trigger. The caller must
// call wait.
func (r *run) armFaults(ctx context.Context, step int) (*armedFaults, error) {
	a := &armedFaults{run: r, over: make(chan struct{})}
	for _, f := range r.schedule.Faults {
		if stepOf(f) != step || f.At == nil && f.Stream == "" {
			continue
		}
		armed, err := r.proxy.Arm(f)
		if err != nil {
			return a, err
		}
		a.all = append(a.all, armedFault{armed, f})
		a.running.Go(func() {
			select {
			case <-armed.Triggered():
			case <-a.over:
				return
			}
			problem, err := r.carryOut(ctx, f, armed, a.over)
			a.mu.Lock()
			defer a.mu.Unlock()
			if err != nil {
				a.err = err
			}
			if problem != "" {
				a.problem = problem
			}
		})
	}
	return a, nil
}

// carryOut carries out the part of a triggered fault that the proxy does not carry out. It returns a problem that
// the fault has shown, or an empty text. A fault of a leader ends at the latest when the channel over is closed.
func (r *run) carryOut(ctx context.Context, f schedule.Fault, armed *faults.Armed, over <-chan struct{}) (problem string, err error) {
	switch {
	case f.Kind == schedule.Crash:
		return "", r.crashProgram(f.String(), f.Restart == schedule.RestartNow)
	case f.Kind.IsOfPlane():
		return "", r.strike(ctx, f)
	case f.Kind.IsOfLeader():
		r.recordFault(f.String())
		return r.handOver(f, armed.Session(), over)
	}
	r.recordFault(f.String())
	return "", nil
}

// before does what happens before a step: an object is stored that the program cannot decode, or a backup is
// made.
func (r *run) before(ctx context.Context, step int) error {
	for _, f := range r.schedule.Faults {
		var err error
		switch {
		case stepOf(f) != step:
		case f.Kind == schedule.Unreadable:
			err = r.storeUnreadable(ctx, f)
		case f.Kind == schedule.Restored:
			err = r.takeBackup(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

// stepOf returns the step in which a fault happens.
func stepOf(f schedule.Fault) int {
	if f.At != nil {
		return f.At.Step
	}
	return f.Step
}

// disarm ends the faults of the step, so that streams deliver the events that were held back, and restarts a
// program that waited for the rest. It returns the faults that did not happen.
func (a *armedFaults) disarm() (missed []schedule.Fault, err error) {
	for _, armed := range a.all {
		select {
		case <-armed.Triggered():
		default:
			missed = append(missed, armed.fault)
		}
	}
	a.run.proxy.Disarm()
	a.mu.Lock()
	err = a.err
	problem := a.problem
	a.mu.Unlock()
	if problem != "" {
		a.run.recordProblem(finding.Wrong, int(a.run.current.Load()), []finding.Difference{{Object: leases, Reason: problem}})
	}
	if err != nil {
		return missed, err
	}
	for _, armed := range a.all {
		if armed.fault.Kind == schedule.Crash && armed.fault.Restart == schedule.RestartAtRest {
			err = a.run.restartProgram()
		}
	}
	return missed, err
}

// wait ends the goroutines of a.
func (a *armedFaults) wait() {
	close(a.over)
	a.running.Wait()
}

// afterwards carries out the faults that happen when a step has come to rest: crashes, and changes by other users
// and controllers.
func (r *run) afterwards(ctx context.Context, step int, wait patience) error {
	for _, f := range r.schedule.Faults {
		if stepOf(f) != step || f.At != nil || f.Stream != "" {
			continue
		}
		switch {
		case f.Kind == schedule.Idle:
			if err := r.idle(ctx, step, wait); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
		case f.Kind == schedule.Stale:
			if err := r.restartInThePast(ctx, f, wait); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
		case f.Kind.IsOfPlane():
			if err := r.strike(ctx, f); err != nil {
				return err
			}
		case f.Kind == schedule.Restored:
			if err := r.restoreBackup(ctx, f); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
		case f.Kind == schedule.Crash:
			if err := r.crashProgram("crash after the last write", f.Restart == schedule.RestartNow); err != nil {
				return err
			}
		case f.Object != nil:
			happened, err := r.meddle(ctx, f)
			if err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
			if !happened {
				r.outcome.missed = append(r.outcome.missed, f)
			}
		}
	}
	return nil
}

// idle lets time pass for a program at rest, or restarts the program, and records the changes that follow.
func (r *run) idle(ctx context.Context, step int, wait patience) error {
	before := len(r.recording.Versions())
	advanced, err := r.advance(ctx)
	if err != nil {
		return err
	}
	if !advanced {
		if err := r.crashProgram("the program is restarted at rest", true); err != nil {
			return err
		}
	}
	r.acted = time.Now()
	if err := r.waitForRest(ctx, wait); err != nil {
		return err
	}
	if changes := history.Changes(r.recording.History(), before, r.explorer.historyOptions()); len(changes) > 0 {
		r.recordProblem(finding.ChangesAtRest, step, changes)
	}
	return nil
}

// advance lets time pass for the program. It reports false if the program has no time of its own.
func (r *run) advance(ctx context.Context) (bool, error) {
	r.replicasMu.Lock()
	defer r.replicasMu.Unlock()
	for _, p := range r.replicas {
		if p.process == nil {
			continue
		}
		r.recordEvent(finding.Event{Lane: finding.Operator, Text: "time passes for the program"})
		if advanced, err := p.process.advance(ctx); !advanced || err != nil {
			return advanced, err
		}
	}
	return true, nil
}

// restartInThePast restarts the program while reads that ask for any version are answered from the
// beginning of the step, and lets the program see the present when it has come to rest.
func (r *run) restartInThePast(ctx context.Context, f schedule.Fault, wait patience) error {
	if err := r.crashProgram("the program is restarted, and may read the past", false); err != nil {
		return err
	}
	armed, err := r.proxy.Arm(f)
	if err != nil {
		return err
	}
	if err := r.restartProgram(); err != nil {
		return err
	}
	r.acted = time.Now()
	if err := r.waitForRest(ctx, wait); err != nil {
		return err
	}
	select {
	case <-armed.Triggered():
		r.recordFault("reads are answered from the past")
	default:
		r.outcome.notApplicable = append(r.outcome.notApplicable, f)
	}
	r.proxy.Disarm()
	return nil
}

// foreignManager is the field manager of other users and controllers.
const foreignManager = "explorer-stranger"

// meddle changes an object as another user or controller does. It reports whether the object existed, and the
// server accepted the change.
func (r *run) meddle(ctx context.Context, f schedule.Fault) (happened bool, err error) {
	object, err := r.find(ctx, *f.Object)
	if err != nil || object == nil {
		return false, err
	}
	r.recordEvent(finding.Event{Lane: finding.User, To: finding.Server, Text: f.String(), Fault: true})
	api, err := r.explorer.apiOf(object.GroupVersionKind(), r.namespace)
	if err != nil {
		return false, err
	}
	api = api.For(r.explorer.client.WithFieldManager(foreignManager), r.namespace)
	name := object.GetName()
	patch := func(body any) error {
		_, err := api.Patch(ctx, name, kube.MergePatch(body))
		return err
	}
	metadata := func(field string, value any) any { return map[string]any{"metadata": map[string]any{field: value}} }
	switch f.Kind {
	case schedule.ForeignEdit:
		err = patch(f.Edit)
	case schedule.ForeignDelete:
		err = api.Delete(ctx, name)
	case schedule.ForeignRecreate:
		if err = api.Delete(ctx, name); err != nil {
			break
		}
		err = r.recreate(ctx, api, object)
	case schedule.StripOwners:
		err = patch(metadata("ownerReferences", nil))
	case schedule.StripFinalizers:
		err = patch(metadata("finalizers", nil))
	case schedule.StripLabels:
		err = patch(metadata("labels", nil))
	default:
		return false, fmt.Errorf("%s is no fault by other users", f.Kind)
	}
	if kube.IsNotFound(err) || kube.IsInvalid(err) || kube.IsBadRequest(err) { // the server refuses some edits
		return false, nil
	}
	return err == nil, err
}

// recreate makes an object with the content of an object that was just deleted, and without its owners.
func (r *run) recreate(ctx context.Context, api kube.API[unstructured.Unstructured], object *unstructured.Unstructured) error {
	again := object.DeepCopy()
	metadata := metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace(), Labels: object.GetLabels(), Annotations: object.GetAnnotations()}
	again.Object["metadata"] = map[string]any{}
	again.SetName(metadata.Name)
	again.SetNamespace(metadata.Namespace)
	again.SetLabels(metadata.Labels)
	again.SetAnnotations(metadata.Annotations)
	delete(again.Object, "status")
	_, err := api.Create(ctx, again)
	if kube.IsAlreadyExists(err) {
		return nil // the program was quicker
	}
	return err
}

// find returns the object of a normalized name, or nil if there is none.
func (r *run) find(ctx context.Context, o schedule.Object) (*unstructured.Unstructured, error) {
	resource, err := r.explorer.resource(o.Resource)
	if err != nil {
		return nil, err
	}
	all, err := kube.Dynamic(r.explorer.client, resource, r.namespace).List(ctx)
	if err != nil {
		return nil, err
	}
	for _, each := range all {
		if r.names.Normalize(each.GetName()) == o.Name {
			return each, nil
		}
	}
	return nil, nil
}
