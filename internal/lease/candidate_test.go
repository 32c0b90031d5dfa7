package lease

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// at returns the reading of a machine whose clocks agree.
func at(d time.Duration) Reading { return Reading{steady: d, running: d} }

func newCandidate(identity string) *candidate {
	return &candidate{namespace: "default", name: "gadgets", identity: identity, timing: DefaultTiming()}
}

// leaseOf returns a Lease that a holder has renewed at a time of its own clock.
func leaseOf(holder string, seconds int32, renewed int64) *Lease {
	l := &Lease{Metadata: metav1.ObjectMeta{Namespace: "default", Name: "gadgets", ResourceVersion: "5"}}
	return withRecord(l, record{holder: holder, durationSeconds: seconds, acquired: 1, renewed: renewed, transitions: 3})
}

// A standby waits from the moment at which it saw the last renewal. What clock the holder has, and
// what time the record shows, makes no difference.
func TestStandbyWaitsFromItsOwnObservation(t *testing.T) {
	t.Parallel()
	c := newCandidate("me")
	wait := func(now time.Duration) time.Duration { return c.untilFree(at(now)) }
	if got := wait(0); got != 0 {
		t.Errorf("before the Lease was read: %s", got)
	}
	c.observe(leaseOf("other", 15, time.Now().Add(-time.Hour).UnixMicro()), at(100*time.Second))
	if got := wait(104 * time.Second); got != 11*time.Second {
		t.Errorf("after an old record: %s", got)
	}
	renewed := leaseOf("other", 15, time.Now().Add(time.Hour).UnixMicro())
	c.observe(renewed, at(110*time.Second))
	relabelled := *renewed
	relabelled.Metadata.ResourceVersion, relabelled.Metadata.Labels = "6", map[string]string{"a": "b"}
	c.observe(&relabelled, at(120*time.Second))
	if got := wait(120 * time.Second); got != 5*time.Second {
		t.Errorf("after a change that is no renewal: %s", got)
	}
	if got := wait(126 * time.Second); got != 0 {
		t.Errorf("after the end: %s", got)
	}
	c.observe(leaseOf("other", 60, 7), at(130*time.Second))
	if got := wait(130 * time.Second); got != time.Minute {
		t.Errorf("with the duration of the holder: %s", got)
	}
	c.observe(leaseOf("", 1, 8), at(131*time.Second))
	if got := wait(131 * time.Second); got != 0 {
		t.Errorf("after the release: %s", got)
	}
	c.observe(leaseOf("other", 15, 9), at(132*time.Second))
	c.observe(nil, at(133*time.Second))
	if got := wait(133 * time.Second); got != 0 {
		t.Errorf("after the deletion: %s", got)
	}
}

// A clock that somebody sets forward neither shortens the wait of a standby nor lengthens a term.
func TestClocksThatAreSet(t *testing.T) {
	t.Parallel()
	standby, leader := newCandidate("me"), newCandidate("you")
	start, later := at(0), Reading{steady: 4 * time.Second, running: time.Hour}
	standby.observe(leaseOf("other", 15, 7), start)
	if got := standby.untilFree(later); got != 11*time.Second {
		t.Errorf("the standby waits for %s", got)
	}
	leader.recordSuccess(leaseOf("you", 15, 7), start)
	if got := leader.timeLeft(later); got > 0 {
		t.Errorf("forward: %s are left", got)
	}
	if got := leader.timeLeft(Reading{steady: 4 * time.Second, running: -time.Hour}); got != 6*time.Second {
		t.Errorf("backward: %s are left", got)
	}
}

// A term counts from when its last renewal was sent. A lost answer counts from the first write
// that the answer can belong to.
func TestTermCountsFromTheSending(t *testing.T) {
	t.Parallel()
	c := newCandidate("me")
	if got := c.timeLeft(at(time.Second)); got > 0 {
		t.Errorf("without a term %s are left", got)
	}
	first := leaseOf("me", 15, 7)
	c.recordSuccess(first, at(10*time.Second))
	if got := c.timeLeft(at(12 * time.Second)); got != 8*time.Second {
		t.Errorf("%s are left", got)
	}
	if c.recordFound(first, at(13*time.Second)) || c.timeLeft(at(13*time.Second)) != 7*time.Second {
		t.Error("the same record extends the term")
	}
	c.recordUnanswered(at(14 * time.Second))
	c.recordUnanswered(at(16 * time.Second))
	if c.recordFound(first, at(17*time.Second)) || c.timeLeft(at(17*time.Second)) != 3*time.Second {
		t.Error("a renewal that was not carried out extends the term")
	}
	if !c.recordFound(leaseOf("me", 15, 8), at(17*time.Second)) || c.timeLeft(at(17*time.Second)) != 7*time.Second {
		t.Errorf("after a renewal without an answer %s are left", c.timeLeft(at(17*time.Second)))
	}
}

// A Lease is written as the electors of client-go write it.
func TestRecordsOfClientGo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 891234567, time.UTC)
	decode := func(l *Lease) coordinationv1.LeaseSpec {
		t.Helper()
		text, err := kube.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var decoded coordinationv1.Lease
		if err := json.Unmarshal(text, &decoded); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return decoded.Spec
	}
	micro := func(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t.Truncate(time.Microsecond)} }
	want := func(holder string, seconds int32, acquired, renewed time.Time, transitions int32) coordinationv1.LeaseSpec {
		return coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions,
			AcquireTime: micro(acquired), RenewTime: micro(renewed),
		}
	}
	same := cmp.Comparer(func(a, b *metav1.MicroTime) bool { return a.Equal(b) })
	check := func(what string, l *Lease, want coordinationv1.LeaseSpec) {
		t.Helper()
		if diff := cmp.Diff(want, decode(l), same); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	c := newCandidate("me")
	c.observe(nil, at(0))
	first := c.claim(now)
	check("the first claim", first, want("me", 15, now, now, 0))
	c.recordSuccess(first, at(0))
	check("a renewal", c.claim(now.Add(2*time.Second)), want("me", 15, now, now.Add(2*time.Second), 0))
	check("a renewal while the clock stands", c.claim(now), want("me", 15, now, now.Add(time.Microsecond), 0))
	check("the release", c.released(now.Add(3*time.Second)), want("", 1, now.Add(3*time.Second), now.Add(3*time.Second), 0))

	taken := leaseOf("other", 15, 7)
	strategy := "OldestEmulationVersion"
	taken.Spec.Strategy = &strategy
	c.observe(taken, at(0))
	claim := want("me", 15, now, now, 4)
	claim.Strategy = (*coordinationv1.CoordinatedLeaseStrategy)(&strategy)
	check("a take-over", c.claim(now), claim)
	if c.claim(now).Metadata.ResourceVersion != "5" {
		t.Error("the claim has no resource version")
	}
}

func TestTiming(t *testing.T) {
	t.Parallel()
	if got, want := DefaultTiming(), (Timing{Duration: 15 * time.Second, Deadline: 10 * time.Second, Period: 2 * time.Second}); got != want {
		t.Errorf("the default is %+v, want %+v", got, want)
	}
	for _, d := range []time.Duration{shortestDuration, 15 * time.Second, time.Minute, longestDuration} {
		timing, err := TimingOf(d)
		if err != nil {
			t.Fatal(err)
		}
		if left := timing.Deadline - 2*timing.Period; left < LeastWriteTime {
			t.Errorf("%s: after a renewal that failed, %s are left for writes", d, left)
		}
		if timing.Duration != d || timing.slack() < d/4 || 2*timing.attempt() > timing.Deadline {
			t.Errorf("%s: %+v", d, timing)
		}
	}
	for _, bad := range []time.Duration{-time.Minute, 0, 2 * time.Second, 3500 * time.Millisecond, 301 * time.Second, math.MaxInt64} {
		if _, err := TimingOf(bad); err == nil || !strings.Contains(err.Error(), "whole number of seconds, from 3s to 5m0s") {
			t.Errorf("%s: the error is %v", bad, err)
		}
	}
}

// The clock of the system goes on.
func TestSystemClock(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]Clock{"the system's": SystemClock(), "two clocks": twoClocks()} {
		before := clock()
		time.Sleep(2 * time.Millisecond)
		after := clock()
		if d := after.shortestSince(before); d < 2*time.Millisecond || d > time.Minute {
			t.Errorf("%s: %s have passed", name, d)
		}
		if after.longestSince(before) < after.shortestSince(before) {
			t.Errorf("%s: %+v, %+v", name, before, after)
		}
	}
}
