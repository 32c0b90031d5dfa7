package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
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
	Steps []finding.Step
	// Only are the kinds that are tried. Default: the kinds that [faults.DefaultKinds] returns.
	Only []faults.Kind
	// Except are the kinds that are left out.
	Except []faults.Kind
	// OptIn are kinds that happen in addition to the default ones.
	OptIn []faults.Kind
	// IsExhaustive is true if each pair of a kind and a request is planned.
	IsExhaustive bool
	// Budget is the time during which new runs begin. Runs that last much longer are cut. Default: no limit.
	Budget time.Duration
	// Seed chooses among what is planned, and its order.
	Seed uint64
	// Parallel is the number of runs at a time. Default: two for each processor, and up to eight while the
	// processors have time left. By default the repetitions of a finding are made at the same time, in addition.
	Parallel int
	// Values are values of fields, by their path, such as spec.schedule. A field without any value, and
	// all fields below it, keep the values of the sample.
	Values map[string][]any
	// Settle is how long at least nothing may happen before a run is at rest.
	Settle time.Duration
	// ExternalSystem is the external system of the operator. It may be nil.
	ExternalSystem *ExternalSystem
	// NamespaceLabel is the value of ExplorationLabel of the namespaces of the runs. It may be empty.
	NamespaceLabel string
	// SecondSamples are other values of the samples, as whole objects of the same kinds. Each value of theirs is tried
	// too.
	SecondSamples []json.RawMessage
	// PairSamples are objects of the same kinds as the samples, with the objects that they refer to. The second clone of
	// each pair in [faults.SimilarNames] is made of them. Default: the clones of a pair refer to the same objects.
	PairSamples []json.RawMessage
	// Components are the components of the control plane of Config, for the faults that stop its components. Default: no
	// faults of the control plane.
	Components faults.Components
	// Accepted are the differences that are intended.
	Accepted []finding.Acceptance
	// Checks are the checks of the user's own.
	Checks []Check
	// Progress is called after each run, and every few seconds. Runs are concurrent, and the calls are not. It may be nil.
	Progress func(Progress)
}

// ErrNoReference means that the references differ, or do not come to rest, so that nothing can be
// judged.
var ErrNoReference = errors.New("there is no stable reference")

// errBudgetEnded is the cause of the end of runs that last much longer than the budget.
var errBudgetEnded = errors.New("the time of the exploration has ended")

// budgetGrace is how much longer than the budget a run may last.
const budgetGrace = 40 * time.Second

// withBudget returns a context that ends some time after the budget, which is zero if there is none.
func withBudget(ctx context.Context, budget time.Duration) (context.Context, context.CancelFunc) {
	if budget == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, budget+budgetGrace, errBudgetEnded)
}

// Explore explores an operator. The record has what was found and covered, also beside an error. Error: the exploration
// could not go on; [ErrNoReference].
func Explore(ctx context.Context, l Launcher, s Settings) (record finding.Record, err error) {
	began := time.Now()
	e, err := newExplorer(ctx, l, s)
	if err != nil {
		return newStoppedRecord(l, s, err), err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	defer e.reportProgress(ctx)()
	err = e.explore(ctx, began)
	record = e.results.snapshot()
	return record, err
}

// newStoppedRecord returns the record of an exploration that could not begin.
func newStoppedRecord(l Launcher, s Settings, err error) finding.Record {
	r := newResults(l.String(), s)
	r.recordStop(err)
	return r.snapshot()
}

// List returns the runs that an exploration would make after the reference runs, one text each, in their order.
func List(ctx context.Context, l Launcher, s Settings) (all []string, err error) {
	err = withReferences(ctx, l, s, func(e *explorer) error {
		jobs, _, err := e.newPlanner().plan(ctx)
		for _, j := range jobs {
			all = append(all, j.String())
		}
		return err
	})
	return all, err
}

// Replay repeats the run of a finding, tries times, and returns the finding with the results of these runs.
// Seen is 0 if no run has the verdict.
func Replay(
	ctx context.Context, l Launcher, s Settings, f finding.Finding, tries int,
) (seen finding.Finding, err error) {
	s.Steps, seen = referenceSteps(f.Schedule), f
	err = withReferences(ctx, l, s, func(e *explorer) (err error) {
		e.checks.includeFailed() // a check that fails without faults is replayed too
		seen, err = e.newExaminer().replay(ctx, f, tries)
		return err
	})
	return seen, err
}

// referenceSteps returns the steps of the references for the replay of a schedule. Without faults, the states after a
// change are not those of the references.
func referenceSteps(s finding.Schedule) []finding.Step {
	if s.Comparison == "" {
		return s.Steps
	}
	steps := []finding.Step{s.Steps[0], {Name: "delete the samples"}}
	for _, step := range s.Steps[1:] {
		steps[1].Delete = append(steps[1].Delete, step.Delete...)
	}
	return steps
}

// withReferences calls work with an explorer that has made the reference runs.
func withReferences(ctx context.Context, l Launcher, s Settings, work func(*explorer) error) (err error) {
	e, err := newExplorer(ctx, l, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	defer e.reportProgress(ctx)()
	if err := e.makeReferences(ctx); err != nil {
		return err
	}
	return work(e)
}

// ReplayFile replays the findings in a file of [report.WriteFile], and returns the findings that a repetition shows.
// Checks that are not among the options cannot fail. A condition that never held is no run, and is left out. The record
// has the findings that were replayed, also beside an error.
func ReplayFile(ctx context.Context, l Launcher, s Settings, path string, tries int) (finding.Record, error) {
	replayed := finding.Record{Coverage: finding.Coverage{Operator: l.String(), Seed: s.Seed, IsComplete: true}}
	record, err := report.ReadFile(path)
	if err != nil {
		return replayed, err
	}
	record.Findings = slices.DeleteFunc(record.Findings,
		func(f finding.Finding) bool { return f.Verdict == finding.NeverHeld })
	if len(record.Findings) == 0 {
		return replayed, fmt.Errorf("%s has no finding that can be replayed", path)
	}
	if i := slices.IndexFunc(record.Findings, func(f finding.Finding) bool { return len(f.Schedule.Steps) == 0 }); i >= 0 {
		return replayed, fmt.Errorf("%s: the schedule of finding %d has no steps: write at least one", path, i+1)
	}
	began, progress := time.Now(), s.Progress
	for i, f := range record.Findings {
		if progress != nil {
			s.Progress = func(p Progress) {
				p.Done, p.Total, p.Findings = i*tries+p.Done, len(record.Findings)*tries, len(replayed.Findings)
				if p.Done > 0 {
					p.Left = time.Since(began) / time.Duration(p.Done) * time.Duration(p.Total-p.Done)
				}
				progress(p)
			}
		}
		got, err := Replay(ctx, l, s, f, tries)
		replayed.Coverage.Took = time.Since(began)
		if err != nil {
			replayed.Coverage.IsComplete, replayed.Coverage.Stopped = false, err.Error()
			return replayed, err
		}
		replayed.Coverage.Runs += got.Tries
		if got.Seen > 0 {
			replayed.Findings = append(replayed.Findings, got)
		} else {
			replayed.Coverage.NotSeenAgain = append(replayed.Coverage.NotSeenAgain, report.Summary(got))
		}
	}
	return replayed, nil
}
