package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// What a program writes outside of its namespace is in the coverage, once for each kind of write.
func TestWritesOutsideAreInTheCoverage(t *testing.T) {
	t.Parallel()
	refused := proxy.RequestRecord{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "kube-system", OutOfBounds: true}
	clustered := proxy.RequestRecord{Point: proxy.Point{Verb: "patch", Resource: "nodes", Subresource: "status", Name: "n"}, ClusterScoped: true}
	own := proxy.RequestRecord{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "run"}
	r := newResults("operator", Settings{})
	r.addOutsideWrites([]proxy.RequestRecord{refused, own, clustered})
	r.addOutsideWrites([]proxy.RequestRecord{clustered, refused})
	if got, want := r.coverage.OutOfBounds, []string{"create configmaps a in kube-system"}; !slices.Equal(got, want) {
		t.Errorf("the writes in other namespaces are %q, want %q", got, want)
	}
	if got, want := r.coverage.ClusterScoped, []string{"patch nodes/status n"}; !slices.Equal(got, want) {
		t.Errorf("the writes in no namespace are %q, want %q", got, want)
	}
}

// Findings of one check are the same finding, whatever version shows them.
func TestKnownFindings(t *testing.T) {
	t.Parallel()
	r := newResults("operator", Settings{})
	for _, f := range []finding.Finding{
		{Verdict: finding.CheckFailed, Differences: []finding.Difference{{Object: "configmaps/a", Check: "few", Reason: "at 0.1 s"}}},
		{Verdict: finding.Wrong, Differences: []finding.Difference{{Object: "configmaps/a", Path: "data"}}},
	} {
		r.addFinding(f)
	}
	for _, test := range []struct {
		verdict    finding.Verdict
		difference finding.Difference
		want       bool
	}{
		{finding.CheckFailed, finding.Difference{Object: "configmaps/b", Check: "few", Reason: "at 0.2 s"}, true},
		{finding.CheckFailed, finding.Difference{Object: "configmaps/a", Check: "many", Reason: "at 0.1 s"}, false},
		{finding.Wrong, finding.Difference{Object: "configmaps/a", Path: "data", Got: "1"}, true},
		{finding.Wrong, finding.Difference{Object: "configmaps/a", Path: "data.x"}, false},
	} {
		if got := r.isKnown(test.verdict, []finding.Difference{test.difference}); got != test.want {
			t.Errorf("%s %s: known is %t, want %t", test.verdict, test.difference, got, test.want)
		}
	}
}

// The coverage names each kind that can happen and has not happened. A kind that cannot happen to the program, and a kind
// that happened to one object and cannot happen to another one, are not among them.
func TestKindsThatNeverHappened(t *testing.T) {
	t.Parallel()
	r := newResults("operator", Settings{})
	jobOf := func(k faults.Kind) job {
		return job{kind: k, schedule: finding.Schedule{Faults: []faults.Fault{{Kind: k}}}}
	}
	r.addPlan(jobOf(faults.Reset), jobOf(faults.Conflict), jobOf(faults.Stale), jobOf(faults.ForeignEdit), jobOf(faults.ForeignEdit))
	r.addRun(jobOf(faults.Reset), &runResult{})
	r.addRun(jobOf(faults.Conflict), &runResult{missed: []faults.Fault{{Kind: faults.Conflict}}})
	r.addRun(jobOf(faults.Stale), &runResult{notApplicable: []notApplicable{{faults.Fault{Kind: faults.Stale}, "no read of the past"}}})
	r.addRun(jobOf(faults.ForeignEdit), &runResult{notApplicable: []notApplicable{{faults.Fault{Kind: faults.ForeignEdit}, "it is refused"}}})
	r.addRun(jobOf(faults.ForeignEdit), &runResult{})
	r.complete()
	c := r.record().Coverage
	if want := []faults.Kind{faults.Conflict}; !slices.Equal(c.NeverHappened, want) {
		t.Errorf("the kinds that never happened are %v, want %v", c.NeverHappened, want)
	}
	if len(c.NotApplicable) != 1 || c.NotApplicable[faults.Stale] != "no read of the past" {
		t.Errorf("not applicable are %v", c.NotApplicable)
	}
}

// The progress says how long the other runs take, and not longer than the budget.
func TestTimeLeft(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		done  int
		until time.Time
		want  time.Duration
	}{
		"no run yet":         {0, time.Time{}, 0},
		"a third is made":    {10, time.Time{}, 40 * time.Second},
		"the budget is less": {10, now.Add(15 * time.Second), 15 * time.Second},
	} {
		r := &results{done: test.done, total: 30, planned: now.Add(-20 * time.Second), until: test.until}
		if got := r.timeLeftLocked(now); got != test.want {
			t.Errorf("%s: %s are left, want %s", name, got, test.want)
		}
	}
}

// The progress says what a run waits for, and how long at most.
func TestActivities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a activities
		first, second := a.begin("crash at a write"), a.begin("reset of a write")
		if got := a.describe(); got != "crash at a write" {
			t.Errorf("without a wait: %q", got)
		}
		second.setWait("healing", time.Now().Add(45*time.Second))
		time.Sleep(5 * time.Second)
		if got, want := a.describe(), "reset of a write: waits for healing, at most 40 s"; got != want {
			t.Errorf("with a wait: %q, want %q", got, want)
		}
		second.endWait()
		first.end()
		if got := a.describe(); got != "reset of a write" {
			t.Errorf("after the end of the first run: %q", got)
		}
	})
}
