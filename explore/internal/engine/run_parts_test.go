package engine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// newQuietMeter returns a meter of a run in which nothing happens.
func newQuietMeter() *quietMeter {
	return &quietMeter{
		proxyActivity: func() proxy.Activity { return proxy.Activity{} },
		lastChange:    func() time.Time { return time.Time{} },
	}
}

// Requests, changes, data of the external system and acts of the user all end the quiet time, and a request without an answer is
// under way.
func TestQuietMeter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		activity, change, part := proxy.Activity{}, began, began
		m := &quietMeter{
			proxyActivity: func() proxy.Activity { return activity },
			lastChange:    func() time.Time { return change },
			lastPart:      func() time.Time { return part },
		}
		for name, happen := range map[string]func(){
			"a request":         func() { activity.LastRequest = time.Now() },
			"an event":          func() { activity.LastEvent = time.Now() },
			"a change":          func() { change = time.Now() },
			"a part of data":    func() { part = time.Now() },
			"an act of a user":  m.recordAct,
			"nothing happening": func() {},
		} {
			time.Sleep(time.Minute)
			before, _ := m.measure()
			happen()
			quiet, isBusy := m.measure()
			if want := name == "nothing happening"; (quiet == before) != want || isBusy {
				t.Errorf("after %s the run is quiet for %s, before for %s; busy: %t", name, quiet, before, isBusy)
			}
		}
		for _, test := range []struct {
			activity proxy.Activity
			isBusy   bool
		}{
			{proxy.Activity{InFlight: 1}, true},
			{proxy.Activity{StreamsBehind: 1}, true},
			{proxy.Activity{StreamsBehind: 1, Held: 1}, false},
		} {
			activity = test.activity
			if _, isBusy := m.measure(); isBusy != test.isBusy {
				t.Errorf("with the activity %+v the run is busy: %t, want %t", activity, isBusy, test.isBusy)
			}
		}
	})
}

// fakeRecording counts the calls of CatchUp, and fails as often as failures says.
type fakeRecording struct {
	failures, catchUps int
	resources          []string
	externalSystem     string
}

func (r *fakeRecording) CatchUp(_ context.Context, resources ...string) error {
	r.catchUps++
	r.resources = resources
	if r.catchUps <= r.failures {
		return errors.New("the server is away")
	}
	return nil
}

func (r *fakeRecording) RecordExternalSystem(text string) { r.externalSystem = text }

// The reader waits for the resources that the program has written, and records the external system. It repeats a refused read
// only if a fault of the run interrupts the server.
func TestStateReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, canBeRefused := range []bool{true, false} {
			recording := &fakeRecording{failures: 1}
			r := &stateReader{
				recording: recording, canBeRefused: canBeRefused, namespace: "run",
				requests: func() []proxy.RequestRecord {
					return []proxy.RequestRecord{{Point: proxy.Point{Verb: "get", Resource: "pods"}}, {Point: proxy.Point{Verb: "patch", Resource: "configmaps"}}}
				},
				look: func(_ context.Context, namespace string) (string, error) { return "zone of " + namespace, nil },
			}
			err := r.catchUp(t.Context())
			if canBeRefused != (err == nil) {
				t.Errorf("a server that can refuse requests: %t, error: %v", canBeRefused, err)
			}
			if !slices.Equal(recording.resources, []string{"configmaps"}) {
				t.Errorf("the reader waits for %v", recording.resources)
			}
			if canBeRefused && recording.externalSystem != "zone of run" {
				t.Errorf("the external system has %q", recording.externalSystem)
			}
		}
	})
}

// newTestReplicas returns the replicas of a program that does nothing, started once, with its launcher.
func newTestReplicas(t *testing.T) (*replicas, *fakeLauncher) {
	t.Helper()
	config := &kube.Config{Host: "http://127.0.0.1:1"}
	p, err := faults.New(faults.Options{Target: config, Admin: config, Namespace: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	launcher := &fakeLauncher{}
	release := func(context.Context, string) error { return nil }
	r := newReplicas(launcher, p, newTrace(), nil, processSettings{folder: t.TempDir()}, release)
	t.Cleanup(r.end)
	if err := r.start(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return r, launcher
}

// newTestRestWaiter returns a waiter of a run in which nothing happens.
func newTestRestWaiter(r *replicas) *restWaiter {
	return &restWaiter{
		limits: waitLimits{window: time.Minute, rest: 300 * time.Millisecond}, operator: "fake", replicas: r, quiet: newQuietMeter(),
		catchUp: func(context.Context) error { return nil }, isDisturbed: func() bool { return false },
		requests: func() []proxy.RequestRecord { return nil }, activity: (&activities{}).begin("test"), trace: newTrace(), output: &output{},
		result: &runResult{},
	}
}

// A run in which nothing happens comes to rest. A run that a fault keeps busy, and a program that has ended, get a verdict.
func TestRestWaiter(t *testing.T) {
	t.Parallel()
	replicas, launcher := newTestReplicas(t)
	w := newTestRestWaiter(replicas)
	if err := w.waitForRest(t.Context()); err != nil || w.result.verdict != "" {
		t.Errorf("a quiet run has the verdict %q, error %v", w.result.verdict, err)
	}
	w = newTestRestWaiter(replicas)
	err := w.preventRest(func() error { return w.waitForRest(t.Context()) })
	if err != nil || w.result.verdict != finding.Busy {
		t.Errorf("a run without rest has the verdict %q, error %v", w.result.verdict, err)
	}
	close(launcher.launched[0].done)
	w = newTestRestWaiter(replicas)
	if err := w.waitForRest(t.Context()); err != nil || w.result.verdict != finding.Exited || w.result.differences[0].Object != "fake" {
		t.Errorf("a run whose program has ended has the verdict %q, error %v", w.result.verdict, err)
	}
}

// A wrong state that a restart makes right has the verdict that the program needs a restart, and a state that stays wrong is
// wrong. A state without differences has no verdict.
func TestStepJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// wrongUntil is how many processes the program has had when the state is right.
		wrongUntil int
		want       finding.Verdict
	}{
		"right": {0, ""}, "right after a restart": {2, finding.NeedsRestart}, "wrong": {3, finding.Wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replicas, launcher := newTestReplicas(t)
			rest := newTestRestWaiter(replicas)
			j := &stepJudge{
				limits:   waitLimits{window: 5 * time.Millisecond, converge: 50 * time.Millisecond},
				schedule: finding.Schedule{Steps: []finding.Step{{Name: "apply the samples"}}},
				compare: func(int, history.State) []finding.Difference {
					if len(launcher.launched) >= test.wrongUntil {
						return nil
					}
					return []finding.Difference{{Object: "configmaps/a", Reason: "it is missing"}}
				},
				checks: newChecks(nil), history: func() history.History { return history.History{} }, requests: rest.requests, catchUp: rest.catchUp,
				replicas: replicas, quiet: rest.quiet, rest: rest, output: rest.output, activity: rest.activity, result: rest.result,
			}
			if err := j.judgeStep(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if j.result.verdict != test.want || len(j.result.states) != 1 {
				t.Errorf("the verdict is %q, want %q; states: %d", j.result.verdict, test.want, len(j.result.states))
			}
		})
	}
}

// A denied write that is not made again is abandoned. A write that is made again is not, and a write denied in a later step is
// not judged yet.
func TestAbandonedWrite(t *testing.T) {
	t.Parallel()
	at := proxy.Point{Verb: "patch", Resource: "configmaps", Name: "a", Step: 1}
	denied := []faults.Fault{{Kind: faults.DeniedRole, At: &at}}
	began := time.Now()
	requests := []proxy.RequestRecord{{Point: at, Fault: string(faults.DeniedRole), Code: http.StatusForbidden, Began: began}}
	if d, ok := abandonedWrite(denied, requests, 1); !ok || d.Object != "configmaps/a" {
		t.Errorf("a write that was denied is not abandoned: %v", d)
	}
	if _, ok := abandonedWrite(denied, requests, 0); ok {
		t.Error("a write of a later step is abandoned")
	}
	again := append(requests, proxy.RequestRecord{Point: at, Code: http.StatusOK, Began: began.Add(time.Second)})
	if _, ok := abandonedWrite(denied, again, 1); ok {
		t.Error("a write that was made again is abandoned")
	}
}

// The user repeats a request that a webhook has not answered, after a restart of the program. Other errors are returned at once.
func TestUserActorRepeatsUnansweredRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unanswered := &wire.Error{Code: http.StatusInternalServerError, Answer: metav1.Status{Message: "failed calling webhook \"pages\""}}
		forbidden := &wire.Error{Code: http.StatusForbidden, Answer: metav1.Status{Message: "no"}}
		for _, test := range []struct {
			errs         []error
			restarts     int
			isSuccessful bool
		}{
			{[]error{nil}, 0, true},
			{[]error{unanswered, unanswered, nil}, 2, true},
			{[]error{unanswered, forbidden}, 1, false},
		} {
			var restarts, tries atomic.Int64
			u := &userActor{trace: newTrace(), restartProgram: func() error { restarts.Add(1); return nil }}
			err := u.retryUnanswered(t.Context(), func() error { return test.errs[tries.Add(1)-1] })
			if (err == nil) != test.isSuccessful || restarts.Load() != int64(test.restarts) {
				t.Errorf("after %v: error %v, restarts %d, want %d", test.errs, err, restarts.Load(), test.restarts)
			}
		}
	})
}

// The functions for the end of a step are called once, the last one first, and their errors are joined.
func TestFaultRunEndsStep(t *testing.T) {
	t.Parallel()
	r := &runActions{}
	failed := errors.New("the configuration is still there")
	var order []string
	r.AtStepEnd(func() error { order = append(order, "first"); return failed })
	r.AtStepEnd(func() error { order = append(order, "second"); return nil })
	if err := r.endStep(); !errors.Is(err, failed) {
		t.Errorf("the end of the step has the error %v", err)
	}
	if err := r.endStep(); err != nil || !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("the functions were called in the order %v, error %v", order, err)
	}
}
