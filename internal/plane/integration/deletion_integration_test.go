package integration

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// terminating returns an error unless a Pod is being deleted and still runs.
func terminating(p *corev1.Pod) error {
	if p.DeletionTimestamp == nil {
		return errors.New("it is not being deleted")
	}
	return runs(true)(p)
}

// newPodWithGrace returns a Pod with a termination grace period.
func newPodWithGrace(name string, seconds int64, annotations ...string) *corev1.Pod {
	p := newPod(name, annotations...)
	p.Spec.TerminationGracePeriodSeconds = &seconds
	return p
}

func TestDeletionHonoursTheGracePeriod(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	const hour = 3600
	for _, p := range []*corev1.Pod{
		newPodWithGrace("default", hour),
		newPodWithGrace("slow", hour, terminateAfter, "2s"),
		newPodWithGrace("too-slow", 3, terminateAfter, "1h"),
		newPodWithGrace("hurried", hour, terminateAfter, "1h"),
		newPodWithGrace("hastened", hour, terminateAfter, "1h"),
		newPodWithGrace("forced", hour, terminateAfter, "1h"),
		newPodWithGrace("held", hour, terminateAfter, "1h", outcome, "pending"),
	} {
		create(t, pods, p)
	}
	for _, name := range []string{"default", "slow", "too-slow", "hurried", "hastened", "forced"} {
		waitForPod(t, pods, name, runs(true))
	}
	waitForPod(t, pods, "held", heldPending)

	remove(t, pods, "forced")
	waitForPod(t, pods, "forced", terminating)
	remove(t, pods, "forced", kube.GracePeriod(0))
	if _, err := pods.Get(t.Context(), "forced"); !kube.IsNotFound(err) {
		t.Errorf("after a forced deletion: %v", err)
	}

	gone := func(name string) {
		t.Helper()
		yaretest.WaitUntilGone(t, pods, name)
	}
	// It takes as long as the annotation says, and until then it is there and runs.
	for _, tc := range []struct {
		name    string
		least   time.Duration
		options []kube.DeleteOption
	}{
		{name: "slow", least: 2 * time.Second},
		{name: "too-slow", least: 3 * time.Second},
		{name: "hurried", least: 2 * time.Second, options: []kube.DeleteOption{kube.GracePeriod(2 * time.Second)}},
	} {
		began := time.Now()
		remove(t, pods, tc.name, tc.options...)
		if err := terminating(get(t, pods, tc.name)); err != nil {
			t.Errorf("%s, after its deletion: %v", tc.name, err)
		}
		gone(tc.name)
		if took := time.Since(began); took < tc.least {
			t.Errorf("%s was gone after %s already", tc.name, took)
		}
	}
	// By default, and where nothing runs, the grace period is not used up.
	remove(t, pods, "default")
	remove(t, pods, "held")
	remove(t, pods, "hastened")
	gone("default")
	gone("held")
	if err := terminating(get(t, pods, "hastened")); err != nil {
		t.Errorf("hastened: %v", err)
	}
	annotate(t, pods, "hastened", terminateAfter, "0s")
	gone("hastened")
}

// A Pod with a finalizer has ended, and stays until the finalizer goes.
func TestFinalizerKeepsAPod(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := podsIn(t, cluster)
	p := newPod("a")
	p.Finalizers = []string{"example.com/wait"}
	create(t, pods, p)
	waitForPod(t, pods, "a", runs(true))
	remove(t, pods, "a")
	waitForPod(t, pods, "a", ended(0))
	patch(t, pods, "a", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	yaretest.WaitUntilGone(t, pods, "a")
}
