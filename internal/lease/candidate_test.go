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
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// at returns the reading of a machine whose clocks agree.
func at(d time.Duration) Reading { return Reading{steady: d, running: d} }

func newCandidate(identity string) *candidate {
	return &candidate{
		namespace: "default", name: "gadgets", identity: identity, timing: DefaultTiming(), ownRecords: make(map[record]Reading),
	}
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
}

// A lease that others held counts as held until the latest end of all records that this process has seen. A record
// that has vanished was seen until then. Only an orderly release ends the wait earlier.
func TestLeaseIsHeldUntilTheLatestEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		l    *Lease
		want time.Duration
	}{
		"deleted":                   {nil, 60 * time.Second},
		"emptied":                   {leaseOf("", 30, 7), 55 * time.Second},
		"emptied entirely":          {leaseOf("", 0, 0), 60 * time.Second},
		"of a shorter duration":     {leaseOf("other", 3, 7), 55 * time.Second},
		"taken by hand":             {leaseOf("someone", 3, 7), 55 * time.Second},
		"released":                  {leaseOf("", 1, 8), 0},
		"of this name, but unknown": {leaseOf("me", 60, 8), 60 * time.Second},
	} {
		c := newCandidate("me")
		c.observe(leaseOf("other", 60, 7), at(100*time.Second))
		c.observe(test.l, at(105*time.Second))
		if got := c.untilFree(at(105 * time.Second)); got != test.want {
			t.Errorf("a lease that is %s: the candidate waits for %s, want %s", name, got, test.want)
		}
	}
	// A process that has seen only the Lease without a holder does not know when it was emptied.
	c := newCandidate("me")
	c.observe(leaseOf("", 30, 7), at(100*time.Second))
	if got := c.untilFree(at(100 * time.Second)); got != 30*time.Second {
		t.Errorf("after a Lease that was emptied before the start: %s", got)
	}
	c = newCandidate("me")
	c.observe(nil, at(100*time.Second))
	if got := c.untilFree(at(100 * time.Second)); got != 0 {
		t.Errorf("without a Lease: %s", got)
	}
}

// A release ends the wait for the holder of that Lease alone. Somebody deletes the Lease of a leader that is cut off. A
// process that knows nothing of the leader makes another Lease, and releases it. The leader may still act.
func TestReleaseOfALeaseThatWasMadeAfterADeletion(t *testing.T) {
	t.Parallel()
	withUID := func(uid types.UID, l *Lease) *Lease {
		l.Metadata.UID = uid
		return l
	}
	taken, released := withUID("b", leaseOf("you", 15, 8)), withUID("b", leaseOf("", 1, 9))
	for name, test := range map[string]struct {
		// states are the states of the Lease after the record of the leader. The first one is seen at 105 s, and then one
		// in each second.
		states []*Lease
		// want is the wait after the last state.
		want time.Duration
	}{
		"all states are seen":           {[]*Lease{nil, taken, released}, 58 * time.Second},
		"the deletion is not seen":      {[]*Lease{taken, released}, 59 * time.Second},
		"the new holder is not seen":    {[]*Lease{nil, released}, 59 * time.Second},
		"only the release is seen":      {[]*Lease{released}, 60 * time.Second},
		"the leader itself releases it": {[]*Lease{withUID("a", leaseOf("", 1, 8))}, 0},
	} {
		c := newCandidate("me")
		c.observe(withUID("a", leaseOf("other", 60, 7)), at(100*time.Second))
		now := 105 * time.Second
		for i, l := range test.states {
			now = time.Duration(105+i) * time.Second
			c.observe(l, at(now))
		}
		if got := c.untilFree(at(now)); got != test.want {
			t.Errorf("%s: after the release the candidate waits for %s, want %s", name, got, test.want)
		}
	}
	// Once the term of the former leader is over, a release ends the wait again.
	c := newCandidate("me")
	c.observe(withUID("a", leaseOf("other", 60, 7)), at(100*time.Second))
	c.observe(released, at(105*time.Second))
	c.observe(withUID("b", leaseOf("you", 60, 10)), at(160*time.Second))
	c.observe(withUID("b", leaseOf("", 1, 11)), at(170*time.Second))
	if got := c.untilFree(at(170 * time.Second)); got != 0 {
		t.Errorf("after the end of the former leader, a release is followed by a wait of %s", got)
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
	leader.rememberStored(leaseOf("you", 15, 7), start)
	if got := leader.timeLeft(later); got > 0 {
		t.Errorf("forward: %s are left", got)
	}
	if got := leader.timeLeft(Reading{steady: 4 * time.Second, running: -time.Hour}); got != 16*time.Second {
		t.Errorf("backward: %s are left", got)
	}
}

// A term counts from when its last renewal was sent. The record on the server shows which renewal without an answer
// was carried out.
func TestTermCountsFromTheSending(t *testing.T) {
	t.Parallel()
	c := newCandidate("me")
	if got := c.timeLeft(at(time.Second)); got > 0 {
		t.Errorf("without a term %s are left", got)
	}
	first, second, third := leaseOf("me", 30, 7), leaseOf("me", 30, 8), leaseOf("me", 30, 9)
	c.rememberStored(first, at(10*time.Second))
	c.rememberSent(second, at(14*time.Second))
	c.rememberSent(third, at(18*time.Second))
	check := func(what string, l *Lease, isOwn bool, left time.Duration) {
		t.Helper()
		if got := c.acceptFound(l); got != isOwn {
			t.Errorf("%s: the record is own: %t", what, got)
		}
		if got := c.timeLeft(at(20 * time.Second)); got != left {
			t.Errorf("%s: %s are left, want %s", what, got, left)
		}
	}
	check("no renewal was carried out", first, true, 10*time.Second)
	check("the renewal of 14 s was carried out", second, true, 14*time.Second)
	check("an older state", first, true, 14*time.Second)
	check("a renewal that this process has not sent", leaseOf("me", 30, 12), false, 14*time.Second)
	check("another holder", leaseOf("other", 30, 8), false, 14*time.Second)
	check("the renewal of 18 s was carried out", third, true, 18*time.Second)
	c.rememberSent(leaseOf("me", 30, 10), at(41*time.Second))
	check("a record that is older than a lease lasts", first, false, 18*time.Second)
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
	check("the first claim", first, want("me", 30, now, now, 0))
	c.rememberStored(first, at(0))
	check("a renewal", c.claim(now.Add(2*time.Second)), want("me", 30, now, now.Add(2*time.Second), 0))
	check("a renewal while the clock stands", c.claim(now), want("me", 30, now, now.Add(time.Microsecond), 0))
	check("the release", c.release(now.Add(3*time.Second)), want("", 1, now.Add(3*time.Second), now.Add(3*time.Second), 0))

	taken := leaseOf("other", 15, 7)
	strategy := "OldestEmulationVersion"
	taken.Spec.Strategy = &strategy
	c.observe(taken, at(0))
	claim := want("me", 30, now, now, 4)
	claim.Strategy = (*coordinationv1.CoordinatedLeaseStrategy)(&strategy)
	check("a take-over", c.claim(now), claim)
	if c.claim(now).Metadata.ResourceVersion != "5" {
		t.Error("the claim has no resource version")
	}
}

func TestTiming(t *testing.T) {
	t.Parallel()
	if got, want := DefaultTiming(), (Timing{Duration: 30 * time.Second, Deadline: 20 * time.Second, Period: 4 * time.Second}); got != want {
		t.Errorf("the default is %+v, want %+v", got, want)
	}
	// A write begins at the worst when the renewal is late by one attempt that fails at once.
	if left := DefaultTiming().Deadline - 2*DefaultTiming().Period; left <= 10*time.Second {
		t.Errorf("in a healthy term, a write may have %s only", left)
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

// A leader that knows the hash of its kinds writes the hash into the labels of the Lease, and keeps the labels of
// others. Without a hash it changes no label.
func TestLabelOfTheKinds(t *testing.T) {
	t.Parallel()
	seen := leaseOf("", 1, 8)
	seen.Metadata.Labels = map[string]string{"a": "b", labelKinds: "former"}
	c := newCandidate("me")
	c.observe(seen, at(0))
	if diff := cmp.Diff(seen.Metadata.Labels, c.claim(time.Now()).Metadata.Labels); diff != "" {
		t.Errorf("without a hash: %s", diff)
	}
	c.kindsHash = "1234"
	if diff := cmp.Diff(map[string]string{"a": "b", labelKinds: "1234"}, c.claim(time.Now()).Metadata.Labels); diff != "" {
		t.Error(diff)
	}
	if seen.Metadata.Labels[labelKinds] != "former" {
		t.Error("the claim has changed the Lease that was seen")
	}
	c.observe(nil, at(0))
	if l := c.claim(time.Now()); l.Metadata.Labels[labelKinds] != "1234" {
		t.Errorf("a new Lease has the labels %v", l.Metadata.Labels)
	}
}
