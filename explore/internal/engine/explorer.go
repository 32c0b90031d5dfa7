package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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
	accepted, err := history.Accept(append(ownAcceptances(), s.Accepted...)...)
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
	recorder, err := history.NewRecorder(ctx, s.Config, resources...)
	if err != nil {
		return nil, err
	}
	return &explorer{settings: s, runner: &runner{
		launcher: l, cluster: c, permissions: permissions, namespaces: &namespaces{cluster: cluster{client: quiet, resources: resources}},
		recorder: recorder, checks: newChecks(s.Checks), results: newResults(l.String(), s.Seed, s.Progress),
		options: history.Options{Users: []string{userManager, faults.ForeignManager}, Accepted: accepted}, components: s.Components, steps: s.Steps,
	}}, nil
}

// close removes the namespaces of the runs, and ends the recorder.
func (e *explorer) close() error {
	defer e.recorder.Close()
	return e.namespaces.close()
}

// makeReferences makes the reference runs. The first one shows whether the others can be made at the same time.
func (e *explorer) makeReferences(ctx context.Context) error {
	limits := waitLimits{window: referenceWindow, rest: time.Minute}
	runs, errs := make([]*runResult, referenceCount), make([]error, referenceCount)
	var running sync.WaitGroup
	for i := range referenceCount {
		limits := limits
		if i == referenceCount-1 {
			limits.delay = slowDelay
		}
		running.Go(func() {
			runs[i], errs[i] = e.run(ctx, finding.Schedule{Steps: e.settings.Steps}, limits, expectNothing)
		})
		if i == 0 || e.mustRunAlone() {
			running.Wait()
		}
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r, err := newReferences(runs, e.settings.Steps, e.options)
	if err != nil {
		return err
	}
	e.results.update(func(c *finding.Coverage) {
		c.Runs, c.References = c.Runs+len(runs), c.References+len(runs)
		c.Masked, c.Warnings = r.masked(), append(c.Warnings, r.warnings()...)
	})
	if f := e.checks.checkReferences(runs); f.Seen > 0 {
		f.Schedule = finding.Schedule{Seed: e.settings.Seed, Steps: e.settings.Steps}
		e.results.addFinding(f)
	}
	if e.mustRunAlone() {
		e.settings.Parallel = 1
	}
	e.references, e.limits = r, r.waitLimits()
	e.election = r.election // of the runner: the runs from here on know how the program elects its leader
	return nil
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
	return sampleReference{
		oneValueState: oneValueState{state: first.states[0], masks: e.references.masks[0]}, text: text,
		hasChildren: len(childrenOf(first.states[0], e.options, e.cluster.namesOf(objects))) > 0, logsErrors: first.errorLine != "",
	}
}

// runAll makes the planned runs until the budget ends: first the runs that share the control plane, some at a time, and
// then the others, one after the other.
func (e *explorer) runAll(ctx context.Context, jobs []job, began time.Time) error {
	examiner := e.newExaminer()
	shared, alone := splitJobs(jobs)
	budget := e.settings.Budget
	if len(alone) > 0 {
		budget = budget * 2 / 3
	}
	isComplete, err := runJobs(ctx, shared, e.settings.Parallel, until(began, budget), examiner.examine)
	if err == nil {
		var isAloneComplete bool
		isAloneComplete, err = runJobs(ctx, alone, 1, until(began, e.settings.Budget), examiner.examine)
		isComplete = isComplete && isAloneComplete
	}
	e.results.update(func(c *finding.Coverage) { c.Complete = isComplete })
	return err
}

// until returns the end of a budget. The zero time means that there is none.
func until(began time.Time, budget time.Duration) time.Time {
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
	record := e.results.record()
	for _, d := range unheld {
		d.Reason = fmt.Sprintf("the condition never held in %d runs: %s", record.Coverage.Runs, d.Reason)
		if !record.Coverage.Complete {
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
		if c.Complete {
			c.UnusedAcceptances = unusedAcceptances(e.options.Accepted)
		}
	})
	return err
}
