package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// What a program writes outside of its namespace is in the coverage, once for each kind of write.
func TestWritesOutsideAreInTheCoverage(t *testing.T) {
	t.Parallel()
	refused := proxy.RequestRecord{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "kube-system", IsOutOfBounds: true}
	clustered := proxy.RequestRecord{Point: proxy.Point{Verb: "patch", Resource: "nodes", Subresource: "status", Name: "n"}, IsClusterScoped: true}
	own := proxy.RequestRecord{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "run"}
	r := newResults("operator", Settings{})
	r.addOutOfBoundsWrites([]proxy.RequestRecord{refused, own, clustered})
	r.addOutOfBoundsWrites([]proxy.RequestRecord{clustered, refused})
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
	r.addNeverHappened()
	c := r.snapshot().Coverage
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
		r := &results{done: test.done, total: 30, plannedAt: now.Add(-20 * time.Second), budgetEnd: test.until}
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

// Violations of one rule and kind are one finding, with the runs that have shown it. One run is enough for a rule that is
// certain, and two runs for all others. A note stands in the coverage.
func TestViolationsOfOneRuleAreOneFinding(t *testing.T) {
	t.Parallel()
	page := func(name string) faults.Object { return faults.Object{Resource: "configmaps", Name: name} }
	remade := rules.Violation{Rule: "remade", Severity: rules.Failure, Object: page("a"), Effect: "remade", Text: "a was made again", Evidence: "It was"}
	left := rules.Violation{Rule: "gone", Severity: rules.Failure, Object: page("a"), Effect: "left", Text: "a is left", Evidence: "It is"}
	note := rules.Violation{Rule: "gone", Severity: rules.Note, Object: page("b"), Effect: "left", Text: "b waits", Evidence: "It does"}
	r := newResults("operator", Settings{})
	add := func(kind faults.Kind, violations ...rules.Violation) {
		s := finding.Schedule{}
		if kind != "" {
			s.Faults = []faults.Fault{{Kind: kind}}
		}
		r.addViolations(s, &runResult{violations: violations}, []string{"jobs.batch/a"})
	}
	add("", left, note)
	if record := r.snapshot(); len(record.Findings) != 0 || len(record.Coverage.Notes) != 1 {
		t.Errorf("after one run that is not certain the findings are %v, and the notes %q", record.Findings, record.Coverage.Notes)
	}
	other := remade
	other.Object = page("b")
	add(faults.Deletion, remade, other)
	add(faults.Pair, left, other)
	record := r.snapshot()
	if len(record.Findings) != 2 {
		t.Fatalf("the findings are %v", record.Findings)
	}
	for i, want := range []finding.Finding{
		{Rule: "remade", Summary: "a was made again", Seen: 2, AlsoWith: []string{"a sample and a second one, one of which is deleted"}},
		{Rule: "gone", Summary: "a is left", Seen: 2}, // the first run had no fault
	} {
		got := record.Findings[i]
		if got.Rule != want.Rule || got.Summary != want.Summary || got.Seen != want.Seen || got.Tries != 3 || !slices.Equal(got.AlsoWith, want.AlsoWith) || got.Verdict != finding.BreaksRule {
			t.Errorf("finding %d is %+v, want %+v of 3", i+1, got, want)
		}
	}
	if want := []string{"jobs.batch/a"}; !slices.Equal(record.Coverage.Recreated, want) {
		t.Errorf("recreated is %q, want %q", record.Coverage.Recreated, want)
	}
}

// A warning becomes a finding when a run shows the same thing for certain.
func TestWarningOfARuleBecomesAFinding(t *testing.T) {
	t.Parallel()
	v := rules.Violation{Rule: "at rest", Severity: rules.Warning, Paths: []string{"spec"}, Text: "once"}
	r := newResults("operator", Settings{})
	r.addViolations(finding.Schedule{}, &runResult{violations: []rules.Violation{v}}, nil)
	if f := r.snapshot().Findings[0]; f.Verdict != finding.MayBreakRule {
		t.Errorf("the verdict is %s", f.Verdict)
	}
	v.Severity, v.Text = rules.Failure, "twice"
	r.addViolations(finding.Schedule{}, &runResult{violations: []rules.Violation{v}}, nil)
	if all := r.snapshot().Findings; len(all) != 1 || all[0].Verdict != finding.BreaksRule || all[0].Summary != "twice" || all[0].Seen != 2 {
		t.Errorf("the findings are %+v", all)
	}
}
