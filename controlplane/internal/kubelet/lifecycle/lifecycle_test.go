package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// life drives one Pod through its life with a clock of its own. What Next decides is
// applied to the Pod at once, as the API server would.
type life struct {
	t       *testing.T
	pod     *corev1.Pod
	history History
	now     time.Time
	writes  int
	again   time.Duration
	removed bool
}

func newLife(t *testing.T, policy corev1.RestartPolicy, annotations map[string]string) *life {
	return &life{
		t: t,
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "1", Generation: 1, Annotations: annotations},
			Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		},
		history: History{IP: "10.128.0.1"},
		now:     time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// look asks once what to do, and does it.
func (l *life) look() {
	settings, _ := ParseSettings(l.pod)
	d := Next(l.pod, settings, &l.history, Node{IP: "10.127.0.1"}, l.now)
	if d.Status != nil {
		l.pod.Status = *d.Status
		l.writes++
	}
	l.again, l.removed = d.RecheckAfter, l.removed || d.Remove
}

// after lets time pass, waking up whenever the last decision asked for it.
func (l *life) after(d time.Duration) *life {
	l.t.Helper()
	end := l.now.Add(d)
	for l.look(); l.again > 0 && !l.now.Add(l.again).After(end); l.look() {
		l.now = l.now.Add(l.again)
	}
	l.now = end
	l.look()
	if l.writes > 1000 {
		l.t.Fatal("the status is written again and again")
	}
	return l
}

func (l *life) delete(grace int64) *life {
	l.pod.DeletionTimestamp = &metav1.Time{Time: l.now.Add(time.Duration(grace) * time.Second)}
	l.pod.DeletionGracePeriodSeconds = &grace
	l.look()
	return l
}

func (l *life) want(phase corev1.PodPhase, ready bool) *life {
	l.t.Helper()
	if l.pod.Status.Phase != phase {
		l.t.Errorf("phase is %s, want %s", l.pod.Status.Phase, phase)
	}
	for _, c := range l.pod.Status.Conditions {
		if c.Type == corev1.PodReady && (c.Status == corev1.ConditionTrue) != ready {
			l.t.Errorf("Ready is %s (%s), want %v", c.Status, c.Reason, ready)
		}
	}
	return l
}

func (l *life) container() corev1.ContainerStatus { return l.pod.Status.ContainerStatuses[0] }

func waitingReason(c corev1.ContainerStatus) string {
	if c.State.Waiting == nil {
		return ""
	}
	return c.State.Waiting.Reason
}

func TestPodRunsAtOnceWithOneWrite(t *testing.T) {
	l := newLife(t, corev1.RestartPolicyAlways, nil).after(0).want(corev1.PodRunning, true)
	l.after(time.Hour).want(corev1.PodRunning, true)
	if l.writes != 1 || l.again != 0 {
		t.Errorf("%d writes, again in %v; want one write and no waking up", l.writes, l.again)
	}
	if s := l.pod.Status; s.PodIP != "10.128.0.1" || s.HostIP != "10.127.0.1" || s.StartTime == nil || s.ObservedGeneration != 1 {
		t.Errorf("status is %+v", s)
	}
}

func TestPodThatIsExpectedToEndSucceeds(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		l := newLife(t, policy, nil).after(900*time.Millisecond).want(corev1.PodRunning, true)
		l.after(200*time.Millisecond).want(corev1.PodSucceeded, false)
		if c := l.container(); c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			t.Errorf("%s: container is %+v", policy, c.State)
		}
	}
}

func TestAnnotations(t *testing.T) {
	always, never, onFailure := corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	for _, test := range []struct {
		name       string
		policy     corev1.RestartPolicy
		annotation string
		value      string
		after      time.Duration
		phase      corev1.PodPhase
		ready      bool
		waiting    string
	}{
		{"fails for good", never, OutcomeAnnotation, "fail", 2 * time.Second, corev1.PodFailed, false, ""},
		{"fails and is restarted", onFailure, OutcomeAnnotation, "fail", 1500 * time.Millisecond, corev1.PodRunning, false, "CrashLoopBackOff"},
		{"crashes", always, OutcomeAnnotation, "crash-loop", 500 * time.Millisecond, corev1.PodRunning, false, "CrashLoopBackOff"},
		{"crashes only once", never, OutcomeAnnotation, "crash-loop", time.Second, corev1.PodFailed, false, ""},
		{"is held", always, OutcomeAnnotation, "pending", time.Hour, corev1.PodPending, false, "ImagePullBackOff"},
		{"is not yet ready", always, ReadyAfterAnnotation, "5s", 4 * time.Second, corev1.PodRunning, false, ""},
		{"is ready late", always, ReadyAfterAnnotation, "5s", 5 * time.Second, corev1.PodRunning, true, ""},
		{"still runs", never, CompleteAfterAnnotation, "3s", 2900 * time.Millisecond, corev1.PodRunning, true, ""},
		{"completes late", never, CompleteAfterAnnotation, "3s", 3 * time.Second, corev1.PodSucceeded, false, ""},
		{"exits with a code", never, ExitCodeAnnotation, "7", time.Second, corev1.PodFailed, false, ""},
		{"has a bad value", always, ReadyAfterAnnotation, "soon", 0, corev1.PodRunning, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLife(t, test.policy, map[string]string{test.annotation: test.value})
			l.after(test.after).want(test.phase, test.ready)
			if got := waitingReason(l.container()); got != test.waiting {
				t.Errorf("waits for %q, want %q", got, test.waiting)
			}
		})
	}
}

func TestExitCodeIsKept(t *testing.T) {
	l := newLife(t, corev1.RestartPolicyNever, map[string]string{ExitCodeAnnotation: "7"}).after(time.Minute)
	if got := l.container().State.Terminated.ExitCode; got != 7 {
		t.Errorf("exit code is %d, want 7", got)
	}
}

func TestCrashLoopBacksOff(t *testing.T) {
	l := newLife(t, corev1.RestartPolicyAlways, map[string]string{OutcomeAnnotation: "crash-loop"}).after(10 * time.Second)
	// It runs for 0.3 s and waits for 1, 2, 4 and 8 s.
	if c := l.container(); c.RestartCount != 3 || c.LastTerminationState.Terminated == nil {
		t.Errorf("%d restarts, last state %+v; want 3", c.RestartCount, c.LastTerminationState)
	}
	l.after(30 * time.Minute)
	if l.again > lastBackOff {
		t.Errorf("it waits for %v, want at most %v", l.again, lastBackOff)
	}
}

func TestContainerIDsAreUnique(t *testing.T) {
	l := newLife(t, corev1.RestartPolicyAlways, map[string]string{OutcomeAnnotation: "crash-loop"})
	seen := map[string]int32{}
	for range 50 {
		l.after(200 * time.Millisecond)
		c := l.container()
		if restarts, found := seen[c.ContainerID]; found && restarts != c.RestartCount {
			t.Fatalf("%s after %d and after %d restarts", c.ContainerID, restarts, c.RestartCount)
		}
		seen[c.ContainerID] = c.RestartCount
	}
}

func TestAnnotationsCanChange(t *testing.T) {
	t.Run("a held Pod is let go", func(t *testing.T) {
		l := newLife(t, corev1.RestartPolicyAlways, map[string]string{OutcomeAnnotation: "pending"}).after(time.Minute)
		l.pod.Annotations = nil
		l.after(0).want(corev1.PodRunning, true)
	})
	t.Run("a crashing Pod recovers", func(t *testing.T) {
		l := newLife(t, corev1.RestartPolicyAlways, map[string]string{OutcomeAnnotation: "crash-loop"}).after(time.Minute)
		l.pod.Annotations = nil
		l.after(lastBackOff).want(corev1.PodRunning, true)
	})
	t.Run("a running Pod starts to crash", func(t *testing.T) {
		l := newLife(t, corev1.RestartPolicyAlways, nil).after(time.Minute)
		l.pod.Annotations = map[string]string{OutcomeAnnotation: "crash-loop"}
		l.after(0).want(corev1.PodRunning, false)
	})
	t.Run("a running Pod becomes unready", func(t *testing.T) {
		l := newLife(t, corev1.RestartPolicyAlways, nil).after(time.Minute)
		l.pod.Annotations = map[string]string{ReadyAfterAnnotation: "1h"}
		l.after(0).want(corev1.PodRunning, false)
	})
	t.Run("a running Pod is not held", func(t *testing.T) {
		l := newLife(t, corev1.RestartPolicyAlways, nil).after(time.Minute)
		l.pod.Annotations = map[string]string{OutcomeAnnotation: "pending"}
		l.after(0).want(corev1.PodRunning, true)
	})
}

func TestDeletion(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		grace       int64
		running     time.Duration // still there after that
		removed     time.Duration // gone after that
	}{
		{"by default", nil, 30, 400 * time.Millisecond, 500 * time.Millisecond},
		{"slowly", map[string]string{TerminateAfterAnnotation: "10s"}, 30, 9900 * time.Millisecond, 10 * time.Second},
		{"cut short by the grace period", map[string]string{TerminateAfterAnnotation: "10s"}, 2, 1900 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLife(t, corev1.RestartPolicyAlways, test.annotations).after(time.Second).delete(test.grace)
			l.after(test.running).want(corev1.PodRunning, true)
			if l.removed {
				t.Fatal("it is removed too early")
			}
			l.after(test.removed-test.running).want(corev1.PodSucceeded, false)
			if !l.removed {
				t.Error("it is not removed")
			}
		})
	}
	t.Run("of a held Pod", func(t *testing.T) {
		if l := newLife(t, corev1.RestartPolicyAlways, map[string]string{OutcomeAnnotation: "pending"}).after(time.Second).delete(30); !l.removed {
			t.Error("it is not removed at once")
		}
	})
	t.Run("before it was ever seen", func(t *testing.T) {
		if l := newLife(t, corev1.RestartPolicyAlways, nil).delete(30); !l.removed {
			t.Error("it is not removed at once")
		}
	})
}

func TestInitContainers(t *testing.T) {
	l := newLife(t, corev1.RestartPolicyAlways, nil)
	always := corev1.ContainerRestartPolicyAlways
	l.pod.Spec.InitContainers = []corev1.Container{{Name: "a"}, {Name: "b"}, {Name: "sidecar", RestartPolicy: &always}}
	l.after(initRun).want(corev1.PodPending, false)
	l.after(initRun).want(corev1.PodRunning, true)
	statuses := l.pod.Status.InitContainerStatuses
	if statuses[0].State.Terminated == nil || statuses[1].State.Terminated == nil || statuses[2].State.Running == nil {
		t.Errorf("statuses are %+v", statuses)
	}
}

func TestReadinessGate(t *testing.T) {
	l := newLife(t, corev1.RestartPolicyAlways, nil)
	l.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
	l.after(0).want(corev1.PodRunning, false)
	l.pod.Status.Conditions = append(l.pod.Status.Conditions, corev1.PodCondition{Type: "example.com/open", Status: corev1.ConditionTrue})
	l.after(0).want(corev1.PodRunning, true)
}

// A node that was restarted knows a Pod only by its status. Whatever the Pod was doing, it
// goes on, and what needs no change is not written.
func TestMemoryLoss(t *testing.T) {
	for _, test := range []struct {
		name       string
		policy     corev1.RestartPolicy
		annotation string
		lived      time.Duration
	}{
		{"running", corev1.RestartPolicyAlways, "", time.Minute},
		{"succeeded", corev1.RestartPolicyNever, "", time.Minute},
		{"failed", corev1.RestartPolicyNever, "fail", time.Minute},
		{"backing off", corev1.RestartPolicyAlways, "crash-loop", 10 * time.Second},
		{"held", corev1.RestartPolicyAlways, "pending", time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLife(t, test.policy, map[string]string{OutcomeAnnotation: test.annotation}).after(test.lived)
			l.history, l.writes = History{IP: l.pod.Status.PodIP}, 0
			l.look()
			if l.writes != 0 {
				t.Errorf("its status was written again: %+v", l.pod.Status)
			}
		})
	}
}

// A Pod that somebody else has ended, as an eviction does, ran on.
func TestPodEndedByOthersStaysEnded(t *testing.T) {
	t.Parallel()
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		l := newLife(t, corev1.RestartPolicyAlways, nil).after(time.Second).want(corev1.PodRunning, true)
		l.pod.Status.Phase, l.pod.Status.Reason = phase, "Evicted"
		l.after(time.Hour).want(phase, false)
		if l.pod.Status.Reason != "Evicted" || l.pod.Status.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("the status is %+v", l.pod.Status)
		}
	}
}
