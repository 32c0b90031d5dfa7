package explore

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// Settings are the settings of an exploration.
type Settings struct {
	// Config is the access to the cluster, with an administrator's rights. The kinds of the steps are
	// defined there.
	Config *kube.Config
	// Samples are the objects that the user applies, and deletes in the end.
	Samples []json.RawMessage
	// Steps are the steps of the user. The first step applies the samples. Default: Samples are applied and
	// deleted.
	Steps []schedule.Step
	// Only are the kinds of faults. Default: all that [faults.DefaultKinds] returns, and transitions.
	Only []faults.Kind
	// Beyond are kinds that happen in addition to the default ones.
	Beyond []faults.Kind
	// Budget is the time during which new runs begin. Default: no limit.
	Budget time.Duration
	// Seed chooses among what is planned, and its order.
	Seed uint64
	// Parallel is the number of runs at a time. Default: two for each processor, and up to eight while the
	// processors have time left.
	Parallel int
	// Values are values of fields, by their path, such as spec.schedule. A field without any value, and
	// all fields below it, keep the values of the sample.
	Values map[string][]any
	// Plane is the control plane of Config, for the faults that stop its components. Default: no faults
	// of the control plane.
	Plane faults.Plane
	// Accepted are the differences that are intended.
	Accepted []finding.Acceptance
	// Checks are the checks of the user's own.
	Checks []Check
	// Progress is called after each run. Runs are concurrent, and the calls are not. It may be nil.
	Progress func(Progress)
}

// Progress is the state of an exploration after a run.
type Progress struct {
	Done, Total, Findings int
	// Text describes the run that has just ended.
	Text string
}

// ErrNoReference means that the references differ, or do not come to rest, so that nothing can be
// judged.
var ErrNoReference = errors.New("there is no stable reference")

// explorer is one exploration.
type explorer struct {
	operator Launcher
	options  Settings
	*cluster
	random *rand.Rand
	// recorder follows the objects of all runs.
	recorder   *history.Recorder
	namespaces *namespaces
	// references are the runs without faults. masks are what the comparison after each step ignores.
	references []*outcome
	masks      []*history.Masks
	wait       patience
	// election is the election of the program in the references, or nil if the program elects no leader.
	election *election
	accepted *history.Accepted

	mu       sync.Mutex
	findings []finding.Finding
	coverage finding.Coverage
	checks   checksOf
	// fresh holds the states of programs that have seen only one value of the samples, by the samples.
	fresh map[string]*freshState
	done  int
	total int
	err   error
}

// Explore explores an operator. Error: the exploration could not be made; [ErrNoReference].
func Explore(ctx context.Context, operator Launcher, o Settings) (record finding.Record, err error) {
	e, err := newExplorer(ctx, operator, o)
	if err != nil {
		return finding.Record{}, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	began := time.Now()
	if err := e.makeReferences(ctx); err != nil {
		return finding.Record{}, err
	}
	jobs, err := e.plan(ctx)
	if err != nil {
		return finding.Record{}, err
	}
	err = e.runAll(ctx, jobs, began)
	if folder := operator.coverFolder(); folder != "" && err == nil {
		e.coverage.Statements, err = codeCoverage(ctx, folder)
	}
	e.coverage.Took = time.Since(began)
	if err == nil {
		e.judgeConditions()
		if e.coverage.Complete {
			e.coverage.UnusedAcceptances = e.unusedAcceptances()
		}
	}
	return finding.Record{Coverage: e.coverage, Findings: e.findings}, err
}

// List returns the runs that an exploration would make after the reference runs, one text each, in their order.
func List(ctx context.Context, operator Launcher, o Settings) (all []string, err error) {
	e, err := newExplorer(ctx, operator, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.makeReferences(ctx); err != nil {
		return nil, err
	}
	jobs, err := e.plan(ctx)
	for _, j := range jobs {
		all = append(all, textOfJob(j))
	}
	return all, err
}

func newExplorer(ctx context.Context, operator Launcher, o Settings) (*explorer, error) {
	if len(o.Samples) == 0 && len(o.Steps) == 0 {
		return nil, errors.New("there is nothing to explore: no sample, and no step")
	}
	client, err := kube.NewClient(o.Config, kube.Timeout(maxRemoval)) // a busy machine needs minutes
	if err != nil {
		return nil, err
	}
	accepted, err := acceptedOf(o.Accepted)
	if err != nil {
		return nil, err
	}
	e := &explorer{
		operator: operator, options: o, cluster: &cluster{client: client}, random: rand.New(rand.NewPCG(o.Seed, 1)),
		fresh: make(map[string]*freshState), accepted: accepted,
		checks: checksOf{hasFailed: make(map[int]bool), hasHeld: make(map[int]bool), failures: make(map[int]error)},
		coverage: finding.Coverage{
			Operator: operator.String(), Seed: o.Seed, Kinds: make(map[faults.Kind]finding.Count),
			NotApplicable: make(map[faults.Kind]string), FieldsWithoutValues: make(map[string]string),
		},
	}
	if err := e.checkAccount(ctx); err != nil {
		return nil, err
	}
	if e.resources, err = history.Resources(ctx, client); err != nil {
		return nil, err
	}
	quiet, err := kube.NewClient(o.Config, kube.Timeout(maxRemoval), kube.OnWarning(nil)) // all kinds are deleted, also deprecated ones
	if err != nil {
		return nil, err
	}
	e.namespaces = &namespaces{client: quiet, resources: e.resources}
	if len(o.Steps) == 0 {
		if e.options.Steps, err = e.stepsOf(o.Samples); err != nil {
			return nil, err
		}
	}
	if e.recorder, err = history.NewRecorder(ctx, o.Config, e.resources...); err != nil {
		return nil, err
	}
	return e, nil
}

// close removes the namespaces of the runs, and ends the recorder.
func (e *explorer) close() error {
	defer e.recorder.Close()
	return e.namespaces.close()
}

// historyOptions returns the field managers that are not the operator, and the accepted differences.
func (e *explorer) historyOptions() history.Options {
	return history.Options{Users: []string{userManager, faults.ForeignManager}, Accepted: e.accepted}
}

// patient returns the patience of a run that confirms a finding.
func (e *explorer) patient() patience {
	p := e.wait
	p.window, p.rest, p.heal = 2*p.window, 3*p.rest, 5*p.heal
	return p
}

// job is one planned run.
type job struct {
	schedule schedule.Schedule
	// kind is the kind of the fault, or [faults.Transition].
	kind faults.Kind
	// field is the field of a transition.
	field string
	// changed are the steps in which the run makes a transition.
	changed []int
}

// runAll makes the planned runs, some at a time, until the budget ends.
func (e *explorer) runAll(ctx context.Context, jobs []job, began time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.total, e.coverage.Complete = len(jobs), true
	for _, j := range jobs {
		count := e.coverage.Kinds[j.kind]
		count.Total++
		e.coverage.Kinds[j.kind] = count
	}
	jobs, alone := splitJobs(jobs)
	budget := e.sharedBudget(alone)
	var load loadMeter
	limiter := newRunLimiter(e.options.Parallel)
	var running sync.WaitGroup
	following, stopFollowing := context.WithCancel(ctx)
	defer running.Wait()
	defer stopFollowing()
	running.Go(func() { limiter.adjustToLoad(following, load.measure) })
	var workers sync.WaitGroup
	for _, j := range jobs {
		if !limiter.acquire(ctx) {
			break
		}
		if budget > 0 && time.Since(began) > budget {
			limiter.release()
			e.coverage.Complete = false
			break
		}
		workers.Go(func() {
			defer limiter.release()
			if err := e.makeRun(ctx, j); err != nil {
				e.recordError(err)
				cancel()
			}
		})
	}
	workers.Wait()
	if err := e.runAlone(ctx, alone, began); err != nil {
		e.recordError(err)
	}
	if ctx.Err() != nil {
		e.coverage.Complete = false
	}
	if e.err != nil {
		return e.err
	}
	return context.Cause(ctx)
}

// maxTries is how often a run is tried if its fault does not happen.
const maxTries = 3

// makeRun makes a planned run, and confirms what the run finds.
func (e *explorer) makeRun(ctx context.Context, j job) error {
	judge, err := e.judgeOf(ctx, j)
	if err != nil {
		return err
	}
	var out *outcome
	for try := 0; try < maxTries; try++ {
		out, err = e.run(ctx, j.schedule, e.patienceOf(j), judge)
		if fewer, ok := withoutRefused(j, err); ok {
			e.countRun(&e.coverage.Refused)
			if j, try = fewer, try-1; len(j.schedule.Steps) == 1 {
				return nil
			}
			if judge, err = e.judgeOf(ctx, j); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		e.countRun(&e.coverage.Runs)
		if len(out.missed) == 0 && (len(out.history.Gaps) == 0 || faults.StopsComponents(j.schedule.Faults)) || out.problem != "" {
			break
		}
	}
	e.judgeHistory(j, out)
	if out.problem != "" && !e.isKnown(out) {
		if err := e.confirm(ctx, j, judge, out); err != nil {
			return err
		}
	}
	e.recordCoverage(j, out)
	return nil
}

// confirmations is how often a finding must repeat.
const confirmations = 2

// confirm repeats a run with more patience, and records a finding if the verdict is the same.
func (e *explorer) confirm(ctx context.Context, j job, judge judge, first *outcome) error {
	f := finding.Finding{
		Operator: e.operator.String(), Verdict: first.problem, Schedule: j.schedule, Differences: first.differences,
		Seen: 1, Tries: 1, Trace: first.trace,
	}
	for range confirmations {
		out, err := e.run(ctx, j.schedule, e.patient(), judge)
		if err != nil {
			return err
		}
		e.countRun(&e.coverage.Runs)
		e.countRun(&e.coverage.Repeats)
		e.judgeHistory(j, out)
		f.Tries++
		switch {
		case out.problem == f.Verdict:
			f.Seen++
			f.Differences, f.Trace = out.differences, out.trace
		case out.problem == finding.Late: // the state was wrong with less patience
			f.Verdict, f.Seen = finding.Late, f.Seen+1
		}
	}
	switch {
	case f.Seen > 1 || f.Verdict.IsCertain():
	case first.isViolated: // one state that must never be is enough
		f.Verdict = finding.CheckFailed
		f.Differences = slices.DeleteFunc(f.Differences, func(d finding.Difference) bool { return d.Check == "" })
	default:
		return nil
	}
	if err := e.minimize(ctx, j, &f); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isKnownLocked(f.Verdict, f.Differences) { // another run may have been quicker
		e.findings = append(e.findings, f)
	}
	return nil
}

// isKnown reports whether a finding has the same verdict and differences.
func (e *explorer) isKnown(out *outcome) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isKnownLocked(out.problem, out.differences)
}

func (e *explorer) isKnownLocked(v finding.Verdict, differences []finding.Difference) bool {
	return slices.ContainsFunc(e.findings, func(f finding.Finding) bool {
		return f.Verdict == v && slices.EqualFunc(f.Differences, differences, finding.Difference.IsSame)
	})
}

// recordCoverage records what a run has covered.
func (e *explorer) recordCoverage(j job, out *outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done++
	for _, f := range out.notApplicable {
		e.coverage.NotApplicable[f.Kind] = "the program never asks for the past"
	}
	if len(out.missed) == 0 && len(out.notApplicable) == 0 {
		count := e.coverage.Kinds[j.kind]
		count.Done++
		e.coverage.Kinds[j.kind] = count
		for _, step := range j.changed {
			if step < len(out.states) {
				e.coverage.Transitions.Done++
			}
		}
		if j.kind == faults.Crash && j.schedule.Faults[0].At != nil && j.schedule.Faults[0].Restart == faults.RestartNow {
			e.coverage.Points.Done++
		}
	}
	for _, write := range out.refused {
		if text := textOfJob(j) + ": " + write; out.problem == "" && !slices.Contains(e.coverage.RefusedWrites, text) {
			e.coverage.RefusedWrites = append(e.coverage.RefusedWrites, text)
		}
	}
	for _, f := range out.missed {
		e.coverage.NotReached = append(e.coverage.NotReached, f.String())
	}
	if e.options.Progress != nil {
		e.options.Progress(Progress{Done: e.done, Total: e.total, Findings: len(e.findings), Text: textOfJob(j)})
	}
}

func (e *explorer) countRun(count *int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*count++
}

// recordError records the first error.
func (e *explorer) recordError(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

func textOfJob(j job) string {
	if j.field != "" {
		return "transition of " + j.field
	}
	for _, f := range j.schedule.Faults {
		return f.String()
	}
	return string(j.kind)
}
