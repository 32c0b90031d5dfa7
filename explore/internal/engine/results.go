package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Progress is the state of an exploration: after a run, or every few seconds.
type Progress struct {
	// Done counts the planned runs that were made, of Total runs. Total is 0 before the runs are planned.
	Done, Total, Findings int
	// Text describes the run that has just ended. It is empty if no run has just ended.
	Text string
	// Present describes what a run does now. It is empty if no run is made.
	Present string
	// Left is about how long the other planned runs take. It is zero as long as that is not known.
	Left time.Duration
}

// results collects what an exploration covers and finds. Its methods are safe for concurrent use.
type results struct {
	// report is called after each planned run, and every few seconds. It may be nil.
	report func(Progress)
	// activities are what the runs do now.
	activities *activities

	mu       sync.Mutex
	coverage finding.Coverage
	findings []finding.Finding
	// done counts the planned runs that were made, of total runs.
	done, total int
	// broken holds where runs have broken rules, by [rules.Violation.Key]. judged counts the runs that were judged.
	broken map[string]*brokenRule
	judged int
	// noteKeys are the keys of the notes.
	noteKeys map[string]bool
	// plannedAt is when the first planned runs were known, and budgetEnd is when the budget ends. Both may be zero.
	plannedAt, budgetEnd time.Time
	// fields are the fields that can have another value. The value is true for a field that had one in a run.
	fields map[string]bool
}

// brokenRule counts the runs that have broken a rule in one way.
type brokenRule struct {
	finding finding.Finding
	// severity is the severity of the finding.
	severity rules.Severity
	// index is the index of the finding in the findings, or -1 if not enough runs have shown it.
	index int
}

func newResults(operator string, s Settings) *results {
	return &results{
		report: s.Progress, activities: &activities{}, fields: make(map[string]bool),
		broken: make(map[string]*brokenRule), noteKeys: make(map[string]bool),
		coverage: finding.Coverage{
			Operator: operator, Seed: s.Seed, IsComplete: true, Kinds: make(map[faults.Kind]finding.Count),
			NotApplicable: make(map[faults.Kind]string), FieldsWithoutValues: make(map[string]string),
		}}
}

// update changes the coverage.
func (r *results) update(change func(c *finding.Coverage)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.coverage)
}

// snapshot returns a copy of what was covered and found.
func (r *results) snapshot() finding.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	findings := slices.Clone(r.findings)
	for _, b := range r.broken {
		if b.index >= 0 {
			findings[b.index] = b.finding
			findings[b.index].Tries = r.judged
		}
	}
	return finding.Record{Coverage: r.coverage, Findings: findings}
}

// hasClusterScopedWrites reports whether the program has written objects in no namespace.
func (r *results) hasClusterScopedWrites() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.coverage.ClusterScoped) > 0
}

// isKnown reports whether a finding has the same verdict and differences.
func (r *results) isKnown(v finding.Verdict, differences []finding.Difference) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isKnownLocked(v, differences)
}

func (r *results) isKnownLocked(v finding.Verdict, differences []finding.Difference) bool {
	return slices.ContainsFunc(r.findings, func(f finding.Finding) bool {
		return f.Verdict == v && slices.EqualFunc(f.Differences, differences, finding.Difference.IsSame)
	})
}

// addFinding adds a finding, unless another run was quicker with the same verdict and differences.
func (r *results) addFinding(f finding.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.Operator = r.coverage.Operator
	if !r.isKnownLocked(f.Verdict, f.Differences) {
		r.findings = append(r.findings, f)
	}
}

// minSeen is how many runs have to break a rule if one run is not certain.
const minSeen = 2

// maxAlsoWith is how many other runs a finding of a rule names.
const maxAlsoWith = 12

// addViolations adds where a run breaks rules. The first run that breaks a rule in one way is the schedule of the
// finding, and later runs are listed. Notes stand in the coverage. recreated are the objects that the program has
// replaced.
func (r *results) addViolations(s finding.Schedule, out *runResult, recreated []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judged++
	for _, object := range recreated {
		r.coverage.Recreated = insert(r.coverage.Recreated, object)
	}
	isSeen := make(map[string]bool)
	for _, v := range out.violations {
		if v.Severity == rules.Note {
			r.addNoteLocked(v)
			continue
		}
		key := v.Key()
		b := r.broken[key]
		if b == nil {
			b = &brokenRule{index: -1}
			r.broken[key] = b
		}
		if b.severity < v.Severity {
			b.severity, b.finding = v.Severity, newRuleFinding(r.coverage.Operator, s, v, out, b.finding)
		}
		if isSeen[key] {
			continue
		}
		isSeen[key] = true
		b.addRun(s)
		if d, _ := rules.DescriptionOf(v.Rule); b.index < 0 && (d.IsCertain || b.finding.Seen >= minSeen) {
			b.index = len(r.findings)
			r.findings = append(r.findings, b.finding)
		}
	}
}

// addNoteLocked adds a note of a rule, unless there is one of the same kind.
func (r *results) addNoteLocked(v rules.Violation) {
	if !r.noteKeys[v.Key()] {
		r.noteKeys[v.Key()] = true
		r.coverage.Notes = append(r.coverage.Notes, v.Rule+": "+v.Text+". "+v.Evidence+".")
	}
}

// newRuleFinding returns the finding of a violation. former is the finding of a violation that is less severe.
func newRuleFinding(
	operator string, s finding.Schedule, v rules.Violation, out *runResult, former finding.Finding,
) finding.Finding {
	f := finding.Finding{
		Operator: operator, Verdict: finding.BreaksRule, Rule: v.Rule, Summary: v.Text,
		Schedule: s, Differences: v.Differences(),
		Seen: former.Seen, AlsoWith: former.AlsoWith, Trace: out.trace,
	}
	if v.Severity == rules.Warning {
		f.Verdict = finding.MayBreakRule
	}
	return f
}

// addRun counts a run that has broken the rule. If a run without faults has shown the finding, the faults of other runs
// do not matter.
func (b *brokenRule) addRun(s finding.Schedule) {
	b.finding.Seen++
	if len(b.finding.Schedule.Faults) == 0 {
		return
	}
	text := describeFaults(s)
	isKnown := slices.Contains(b.finding.AlsoWith, text) || text == describeFaults(b.finding.Schedule)
	if !isKnown && len(b.finding.AlsoWith) < maxAlsoWith {
		b.finding.AlsoWith = append(b.finding.AlsoWith, text)
	}
}

// describeFaults returns the faults of a run in a line.
func describeFaults(s finding.Schedule) string {
	if len(s.Faults) == 0 {
		return "no fault"
	}
	return s.Faults[0].String()
}

// addPlan adds planned runs.
func (r *results) addPlan(jobs ...job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plannedAt.IsZero() {
		r.plannedAt = time.Now()
	}
	r.total += len(jobs)
	for _, j := range jobs {
		count := r.coverage.Kinds[j.kind]
		count.Total++
		r.coverage.Kinds[j.kind] = count
	}
}

// addFields adds fields that can have another value.
func (r *results) addFields(paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range paths {
		r.fields[path] = false
	}
}

// setBudgetEnd sets when the budget ends. The zero time means that there is no budget.
func (r *results) setBudgetEnd(end time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budgetEnd = end
}

// addRun adds what a planned run has covered.
func (r *results) addRun(j job, out *runResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.coverage
	r.done++
	for _, each := range out.notApplicable {
		c.NotApplicable[each.fault.Kind] = each.reason
	}
	if out.hasHappened() {
		count := c.Kinds[j.kind]
		count.Done++
		c.Kinds[j.kind] = count
		for _, step := range j.transitionSteps {
			if step < len(out.states) {
				c.Transitions.Done++
			}
		}
		if hadValue, isKnown := r.fields[j.changed]; isKnown && !hadValue && len(out.states) > 1 {
			r.fields[j.changed] = true
			c.Fields.Done++
		}
		if j.kind == faults.Crash && j.schedule.Faults[0].At != nil && j.schedule.Faults[0].Restart == faults.RestartNow {
			c.Points.Done++
		}
	}
	for _, write := range out.refused {
		if text := j.String() + ": " + write; out.verdict == "" && !slices.Contains(c.RefusedWrites, text) {
			c.RefusedWrites = append(c.RefusedWrites, text)
		}
	}
	for _, f := range out.missed {
		if f.IsDenial() && f.At == nil {
			c.NotApplicable[f.Kind] = "no write of " + f.Target().String() + " followed the user's change"
			continue
		}
		c.NotReached = append(c.NotReached, f.String())
	}
	r.reportLocked(j.String())
}

// addFailedRun adds a planned run that could not be made.
func (r *results) addFailedRun(j job, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.coverage.FailedRuns = append(r.coverage.FailedRuns, fmt.Sprintf("%s: %v", j, err))
	r.reportLocked(j.String() + ": " + err.Error())
}

// recordStop records why the exploration could not go on.
func (r *results) recordStop(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coverage.IsComplete, r.coverage.Stopped = false, why.Error()
}

// addRepeat adds a run of a replay.
func (r *results) addRepeat(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.reportLocked(text)
}

// addNeverHappened adds the kinds that have happened in no run, although they can happen to the program.
func (r *results) addNeverHappened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.coverage
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		if c.Kinds[kind].Done > 0 {
			delete(c.NotApplicable, kind) // to other objects
			continue
		}
		if c.NotApplicable[kind] == "" {
			c.NeverHappened = append(c.NeverHappened, kind)
		}
	}
}

// reportInterval is the time between two reports of the progress.
const reportInterval = 5 * time.Second

// reportUntil reports the progress every few seconds until ctx ends.
func (r *results) reportUntil(ctx context.Context) {
	for clock.SleepReal(ctx, reportInterval) == nil {
		r.mu.Lock()
		r.reportLocked("")
		r.mu.Unlock()
	}
}

// reportLocked reports the progress. ended describes the run that has just ended, or is empty.
func (r *results) reportLocked(ended string) {
	if r.report != nil {
		r.report(Progress{
			Done: r.done, Total: r.total, Findings: len(r.findings), Text: ended, Present: r.activities.describe(),
			Left: r.timeLeftLocked(time.Now()),
		})
	}
}

// timeLeftLocked returns about how long the other planned runs take, from the time that the runs so far have taken, and
// not longer than the budget. Example: if 10 of 30 runs took 20 s, the others take 40 s.
func (r *results) timeLeftLocked(now time.Time) time.Duration {
	if r.done == 0 || r.plannedAt.IsZero() {
		return 0
	}
	left := now.Sub(r.plannedAt) / time.Duration(r.done) * time.Duration(max(r.total-r.done, 0))
	if !r.budgetEnd.IsZero() {
		left = min(left, max(r.budgetEnd.Sub(now), 0))
	}
	return left
}

// addOutOfBoundsWrites adds the writes of a program outside of the namespace of its run: in other namespaces, which
// were refused, and in no namespace.
func (r *results) addOutOfBoundsWrites(requests []proxy.RequestRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range requests {
		switch {
		case request.IsOutOfBounds:
			r.coverage.OutOfBounds = insert(r.coverage.OutOfBounds, describeWrite(request))
		case request.IsClusterScoped:
			r.coverage.ClusterScoped = insert(r.coverage.ClusterScoped, describeWrite(request))
		}
	}
}

// addWaiting adds objects that wait for a finalizer after the user has deleted them.
func (r *results) addWaiting(objects ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range objects {
		r.coverage.Waiting = insert(r.coverage.Waiting, object)
	}
}

// describeWrite returns a write in short, such as: create configmaps a in kube-system.
func describeWrite(r proxy.RequestRecord) string {
	what := r.Point.Resource
	if r.Point.Subresource != "" {
		what += "/" + r.Point.Subresource
	}
	text := fmt.Sprintf("%s %s %s", r.Point.Verb, what, r.Point.Name)
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// insert adds a text to sorted texts, unless it is among them.
func insert(texts []string, text string) []string {
	i, found := slices.BinarySearch(texts, text)
	if found {
		return texts
	}
	return slices.Insert(texts, i, text)
}
