package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// explorer makes one exploration. First come the references, which show what to plan and what to expect of all other
// runs.
type explorer struct {
	*runner
	settings Settings

	// references and limits are set by makeReferences.
	references *references
	limits     waitLimits
	// failures counts the runs in a row that could not be made.
	failures atomic.Int64
}

func newExplorer(ctx context.Context, l Launcher, s Settings) (*explorer, error) {
	if len(s.Samples) == 0 && len(s.Steps) == 0 {
		return nil, errors.New("there is nothing to explore: no sample, and no step")
	}
	config := s.Config.Clone()
	config.Timeout = maxRemoval // a busy machine needs minutes
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	accepted, err := history.NewAccepted(append(ownAcceptances(), s.Accepted...)...)
	if err != nil {
		return nil, err
	}
	permissions := &permissions{client, s.Config, l.account()}
	if err := permissions.check(ctx); err != nil {
		return nil, err
	}
	resources, err := history.Resources(ctx, client)
	if err != nil {
		return nil, err
	}
	config.OnWarning = func(context.Context, *wire.Request, string) {} // all kinds are deleted, also deprecated ones
	quiet, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{client: client, resources: resources}
	if len(s.Steps) == 0 {
		if s.Steps, err = c.stepsOf(s.Samples); err != nil {
			return nil, err
		}
	}
	externalSystem := cmp.Or(s.ExternalSystem, &ExternalSystem{})
	recorder, err := history.NewRecorder(ctx, s.Config, resources...)
	if err != nil {
		return nil, err
	}
	webhooks, err := newWebhookFront()
	if err != nil {
		recorder.Close()
		return nil, err
	}
	e := &explorer{settings: s, runner: &runner{
		launcher: l, cluster: c, permissions: permissions,
		namespaces: &namespaces{
			cluster: cluster{client: quiet, resources: resources}, emptyExternalSystem: externalSystem.Empty,
			label: s.NamespaceLabel,
		},
		recorder: recorder, checks: newChecks(s.Checks), results: newResults(l.String(), s),
		options: history.Options{
			Users: []string{userManager, faults.ForeignManager, faults.ConflictManager}, Accepted: accepted,
		},
		components: s.Components, steps: s.Steps, externalSystem: externalSystem, webhooks: webhooks,
	}}
	e.rules = newRuleJudge(c, e.options, e.results, e.runWithoutRules)
	return e, nil
}

// close removes the namespaces of the runs, and ends the recorder. Then it releases what the processes have had in
// common: the removal of a namespace needs the conversions of its objects.
func (e *explorer) close() error {
	defer e.recorder.Close()
	defer e.webhooks.close()
	return errors.Join(e.namespaces.close(), e.launcher.close())
}

// reportProgress reports the progress every few seconds until the caller calls the function that it returns.
func (e *explorer) reportProgress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { e.results.reportUntil(ctx) })
	return func() {
		cancel()
		reporting.Wait()
	}
}

// explore makes all runs. The end of the budget is no error, but it is in the coverage.
func (e *explorer) explore(ctx context.Context, began time.Time) error {
	limited, cancel := withBudget(ctx, e.settings.Budget)
	defer cancel()
	err := e.makeReferences(limited)
	if err == nil {
		err = e.makePlannedRuns(limited, began)
	}
	if ctx.Err() == nil && errors.Is(context.Cause(limited), errBudgetEnded) {
		e.results.update(func(c *finding.Coverage) { c.IsComplete = false })
		if e.references == nil {
			e.results.update(func(c *finding.Coverage) { c.Stopped = "the time ended before the runs without faults were made" })
		}
		err = nil
	}
	if err != nil {
		e.results.recordStop(err)
	}
	e.results.addNeverHappened()
	return errors.Join(err, e.completeCoverage(ctx, began))
}

// makePlannedRuns plans the runs after the references, and makes them.
func (e *explorer) makePlannedRuns(ctx context.Context, began time.Time) error {
	planned, more, err := e.newPlanner().plan(ctx)
	if err != nil {
		return err
	}
	e.results.addPlan(planned...)
	return e.runAll(ctx, planned, more, began)
}

// makeReferences makes the reference runs. The first one shows whether the others can be made at the same time.
func (e *explorer) makeReferences(ctx context.Context) error {
	limits := waitLimits{window: max(referenceWindow, e.settings.Settle), rest: referenceRest + 2*e.settings.Settle}
	runs, errs := make([]*runResult, referenceCount), make([]error, referenceCount)
	var running sync.WaitGroup
	for i := range referenceCount {
		limits := limits
		if i == referenceCount-1 {
			limits.delay = slowDelay
		}
		makeRun := func() {
			runs[i], errs[i] = e.run(ctx, finding.Schedule{Steps: e.settings.Steps}, limits, expectAnyState)
		}
		running.Go(makeRun)
		if i == 0 || e.mustRunAlone() {
			running.Wait()
		}
		if i == 0 && runs[0] != nil && servesCalls(runs[0].requests) {
			// The user may have been faster than the program. All other runs wait for the webhooks and conversions.
			e.results.update(func(c *finding.Coverage) { c.Runs, c.References = c.Runs+1, c.References+1 })
			e.servesCalls, e.hasWebhooks = true, hasWebhooks(runs[0].requests)
			makeRun()
		}
		if i == 0 && kube.IsInvalid(errs[0]) { // the server refuses what the user applies
			return errs[0]
		}
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	made := slices.DeleteFunc(slices.Clone(runs), func(out *runResult) bool { return out == nil })
	e.results.update(func(c *finding.Coverage) { c.Runs, c.References = c.Runs+len(made), c.References+len(made) })
	if f := e.checks.checkReferences(made); f.Seen > 0 {
		f.Schedule = finding.Schedule{Seed: e.settings.Seed, Steps: e.settings.Steps}
		e.results.addFinding(f)
	}
	e.addFailedChecks(made)
	e.rules.exempt(made)
	r, err := newReferences(runs, errs, e.settings.Steps, e.options)
	if err != nil {
		return err
	}
	e.results.update(func(c *finding.Coverage) {
		c.Masked, c.Warnings = r.masked(), append(c.Warnings, r.warnings()...)
		c.ComparedSteps = finding.Count{Done: len(e.settings.Steps) - len(r.unstable), Total: len(e.settings.Steps)}
	})
	if e.mustRunAlone() {
		e.settings.Parallel = 1
	}
	e.references, e.limits = r, r.waitLimits(e.settings.Settle)
	e.election = r.election // of the runner: the runs from here on know how the program elects its leader
	return nil
}

// addFailedChecks adds a finding for the reference runs that a check of the user's own at rest has ended.
func (e *explorer) addFailedChecks(references []*runResult) {
	for _, out := range references {
		isOfCheck := func(d finding.Difference) bool { return d.Check != "" }
		if !out.hasFailedCheck && slices.ContainsFunc(out.differences, isOfCheck) {
			e.results.addFinding(finding.Finding{
				Verdict: finding.CheckFailed, Schedule: finding.Schedule{Seed: e.settings.Seed, Steps: e.settings.Steps},
				Differences: out.differences, Seen: 1, Tries: len(references), Trace: out.trace,
			})
		}
	}
}

// mustRunAlone reports whether one run is made at a time: objects in no namespace would be shared by
// runs at the same time.
func (e *explorer) mustRunAlone() bool {
	return e.settings.Parallel == 1 || e.results.hasClusterScopedWrites()
}

// newPlanner returns the planner of the runs after the references.
func (e *explorer) newPlanner() *planner {
	return &planner{e.settings, e.cluster, e.references, e.results, rand.New(rand.NewPCG(e.settings.Seed, 1))}
}

// newExaminer returns the examiner of the runs after the references.
func (e *explorer) newExaminer() *examiner {
	return &examiner{
		run: e.run, references: e.references, checks: e.checks, options: e.options, results: e.results, limits: e.limits,
		repeatsTogether: e.settings.Parallel == 0,
		oneValue: &oneValueStates{
			run: e.run, cluster: e.cluster, results: e.results, options: e.options, limits: e.limits.forConfirmation(),
			reference: e.sampleReference(), states: make(map[string]func() (oneValueState, error)),
		},
	}
}

// sampleReference returns what the references show of the samples.
func (e *explorer) sampleReference() sampleReference {
	first := e.references.runs[0]
	text, objects, err := e.cluster.appliedUntil(e.settings.Steps, 0)
	if err != nil {
		return sampleReference{} // the references have applied the samples, so their kinds are known
	}
	shapes := make(map[string]bool)
	for _, reference := range e.references.runs {
		for _, line := range reference.errorLines {
			shapes[errorShape(line)] = true
		}
	}
	return sampleReference{
		oneValueState: oneValueState{state: first.states[0], masks: e.references.masks[0]}, text: text,
		hasMadeObjects: len(madeObjects(first.states[0], e.options, e.cluster.namesOf(objects))) > 0, errorShapes: shapes,
	}
}

// runAll makes the planned runs until the budget ends: first the runs that share the control plane, some at a time, and
// then the others, one after the other. What is left of a budget goes to more runs.
func (e *explorer) runAll(ctx context.Context, planned, more []job, began time.Time) error {
	examiner := e.newExaminer()
	shared, alone := splitJobs(planned)
	moreShared, moreAlone := splitJobs(more)
	end := endOfBudget(began, e.settings.Budget)
	e.results.setBudgetEnd(end)
	makeAll := func(planned, more []job, parallel int, until time.Time) (bool, error) {
		queue := newJobQueue(planned, more, e.settings.Budget > 0)
		return runJobs(ctx, queue, parallel, until, func(ctx context.Context, j job, isMore bool) error {
			return e.makeJob(ctx, examiner, queue, j, isMore)
		})
	}
	sharedEnd := end
	if len(alone) > 0 {
		sharedEnd = endOfBudget(began, e.settings.Budget*2/3)
	}
	isComplete, err := makeAll(shared, moreShared, e.settings.Parallel, sharedEnd)
	if err == nil {
		var isAloneComplete bool
		isAloneComplete, err = makeAll(alone, moreAlone, 1, end)
		isComplete = isComplete && isAloneComplete
	}
	e.results.update(func(c *finding.Coverage) { c.IsComplete = isComplete })
	return err
}

// maxFailuresInRow is how many runs in a row may fail to be made before the exploration ends.
const maxFailuresInRow = 8

// makeJob makes a run of a queue. A run that cannot be made costs that run. Error: many runs in a row could not be
// made, or the exploration has ended.
func (e *explorer) makeJob(ctx context.Context, x *examiner, queue *jobQueue, j job, isMore bool) error {
	if isMore {
		e.results.addPlan(j)
	}
	hasHappened, err := x.examine(ctx, j)
	switch {
	case err == nil:
		e.failures.Store(0)
		if !hasHappened {
			queue.recordMissed(j.kind)
		}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		e.results.addFailedRun(j, err)
		queue.recordMissed(j.kind)
		if n := e.failures.Add(1); n >= maxFailuresInRow {
			return fmt.Errorf("%d runs in a row could not be made, the last one: %w", n, err)
		}
	}
	return nil
}

// endOfBudget returns the end of a budget. The zero time means that there is none.
func endOfBudget(began time.Time, budget time.Duration) time.Time {
	if budget == 0 {
		return time.Time{}
	}
	return began.Add(budget)
}

// completeCoverage adds what is known after the last run: the time, the statements, the conditions that have held in no
// run, and the intended differences not shown by any run.
func (e *explorer) completeCoverage(ctx context.Context, began time.Time) (err error) {
	var statements map[string]finding.Count
	if folder := e.launcher.coverFolder(); folder != "" {
		statements, err = codeCoverage(ctx, folder)
	}
	total, unheld := e.checks.conditions()
	record := e.results.snapshot()
	for _, d := range unheld {
		d.Reason = fmt.Sprintf("the condition never held in %d runs: %s", record.Coverage.Runs, d.Reason)
		if !record.Coverage.IsComplete {
			e.results.update(func(c *finding.Coverage) {
				c.Warnings = append(c.Warnings, fmt.Sprintf("condition %q: %s. Not all planned runs were made.", d.Check, d.Reason))
			})
			continue
		}
		e.results.addFinding(finding.Finding{
			Verdict: finding.NeverHeld, Seen: record.Coverage.Runs, Tries: record.Coverage.Runs,
			Schedule: finding.Schedule{Seed: e.settings.Seed, Steps: e.settings.Steps}, Differences: []finding.Difference{d},
		})
	}
	e.results.update(func(c *finding.Coverage) {
		c.Statements, c.Took = statements, time.Since(began)
		c.Conditions = finding.Count{Done: total - len(unheld), Total: total}
		used, unused := countedAcceptances(e.options.Accepted)
		c.Acceptances = used
		kinds := plannedKinds(e.settings)
		if slices.Contains(kinds, faults.Transition) || slices.Contains(kinds, faults.ObjectChange) {
			warnOfUnchanged(c)
		}
		if c.IsComplete {
			c.UnusedAcceptances = unused
		}
	})
	return err
}

// warnOfUnchanged adds a warning if no field of the samples has another value in any run.
func warnOfUnchanged(c *finding.Coverage) {
	if c.Fields.Total > 0 && c.Fields.Done == 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("None of the %d fields of the samples has another value in any run: "+
			"the mistakes that a change shows are not found. --values names a second sample.", c.Fields.Total))
	}
}
