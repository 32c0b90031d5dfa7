package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
)

// stepJudge judges the states that a run has at the rest after its steps.
type stepJudge struct {
	limits   waitLimits
	schedule finding.Schedule
	// compare compares a state with the expected one.
	compare compareState
	cluster *cluster
	options history.Options
	checks  *checks
	// explorationSteps are the steps of the exploration. The schedule may have other steps.
	explorationSteps []finding.Step
	// history returns the history of the run so far.
	history func() history.History
	// requests returns the requests of the program so far.
	requests func() []proxy.RequestRecord
	// catchUp brings the history up to the present: see [stateReader.catchUp].
	catchUp func(ctx context.Context) error
	// externalParts returns how many parts of data have passed to the external system in the step. It is nil if there is
	// no external system.
	externalParts func() int
	replicas      *replicas
	quiet         *quietMeter
	rest          *restWaiter
	output        *output
	activity      *activity
	result        *runResult
}

// state returns the objects of the run, as far as they are recorded.
func (j *stepJudge) state() history.State { return j.history().State() }

// isJudged reports whether the run already has a verdict.
func (j *stepJudge) isJudged() bool { return j.result.verdict != "" }

// deletionWait is how long objects may take to go after the user has deleted all samples.
const deletionWait = 12 * time.Second

// waitForDeletion waits until no object is left after the last step, if that step deletes all samples, and if the rule
// about left objects judges the run. It waits for deletionWait at most, or longer if the limits allow more.
func (j *stepJudge) waitForDeletion(ctx context.Context, step int) error {
	steps, err := ruleSteps(j.cluster, j.schedule.Steps)
	if err != nil || step != len(steps)-1 || j.isJudged() || !rules.CanJudgeDeletion(j.schedule.Faults) ||
		!rules.DeletesAll(steps, step) {
		return err
	}
	for until := time.Now().Add(max(deletionWait, j.limits.converge)); time.Now().Before(until); {
		view := history.NewView(j.history(), j.options)
		if len(rules.LeftObjects(view, view.State(), steps)) == 0 {
			return nil
		}
		if err := clock.SleepReal(ctx, min(j.limits.window, 500*time.Millisecond)); err != nil {
			return err
		}
		if err := j.catchUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// judgeStep records the state at the rest after a step, and compares it. A wrong state gets time to become right, by
// itself and then by a restart of the program.
func (j *stepJudge) judgeStep(ctx context.Context, step int) error {
	j.result.states = append(j.result.states, j.state())
	if j.externalParts != nil {
		j.result.externalParts = append(j.result.externalParts, j.externalParts())
	}
	if j.isJudged() || j.replicas.isDown() {
		return nil
	}
	if j.schedule.Faults.HasFaultBeyond(step) {
		return nil // the next step shows whether the program recovers
	}
	differences, err := j.waitForHealing(ctx, step)
	if err != nil || len(differences) == 0 {
		return err
	}
	if write, ok := abandonedWrite(j.schedule.Faults, j.requests(), step); ok {
		return j.judgeAbandonedWrite(ctx, step, write, differences)
	}
	if writes := j.explainingWrites(step); len(writes) > 0 {
		j.result.refused = append(j.result.refused, writes...)
		return nil // the next step shows whether the program recovers
	}
	return j.judgeAfterRestart(ctx, step, differences)
}

// differences returns what is wrong in a state at the rest after a step.
func (j *stepJudge) differences(step int, state history.State) []finding.Difference {
	isLast := step == len(j.schedule.Steps)-1
	return append(j.unexpected(step, state), j.checks.checkRest(step, isLast, state)...)
}

// unexpected returns how a state differs from the expected one. Children that a clone of a sample lacks are no
// difference if the program has reported why.
func (j *stepJudge) unexpected(step int, state history.State) []finding.Difference {
	differences := j.compare(step, state)
	if j.schedule.Comparison != finding.CompareChildren {
		return differences
	}
	return slices.DeleteFunc(differences, func(d finding.Difference) bool {
		_, name, _ := strings.Cut(d.Object, "/")
		return d.Path != ownersPath && hasReportedMissing(name, state, j.output.errorLines())
	})
}

// lateAfter is a time limit: a state that becomes right after more time is late.
const lateAfter = 30 * time.Second

// minDenialHealing and maxDenialHealing bound how long a program may take to make a write again that was denied. A
// back-off that doubles its waits may wait for as long again as the write was denied, which is some seconds.
const minDenialHealing, maxDenialHealing = 15 * time.Second, 30 * time.Second

// waitForHealing waits for a wrong state to become right, and returns the differences that stay.
func (j *stepJudge) waitForHealing(ctx context.Context, step int) ([]finding.Difference, error) {
	differences := j.differences(step, j.state())
	began, limit := time.Now(), j.limits.converge
	if j.schedule.Faults.HasDenial() {
		limit = min(max(limit, minDenialHealing), maxDenialHealing)
	}
	j.activity.setWait("healing", began.Add(limit))
	defer j.activity.endWait()
	for len(differences) > 0 && time.Since(began) < limit {
		if err := clock.SleepReal(ctx, j.limits.window); err != nil {
			return nil, err
		}
		if err := j.catchUp(ctx); err != nil {
			return nil, err
		}
		if differences = j.differences(step, j.state()); len(differences) == 0 && time.Since(began) > lateAfter {
			j.result.recordVerdict(finding.Late, step, nil)
		}
	}
	return differences, nil
}

// judgeAbandonedWrite judges a program that has not made a denied write again. A program whose clock can be moved gets
// its next reconcile before.
func (j *stepJudge) judgeAbandonedWrite(
	ctx context.Context, step int, write finding.Difference, differences []finding.Difference,
) error {
	isAdvanced, err := j.replicas.advanceClock(ctx)
	if err != nil {
		return err
	}
	if isAdvanced {
		j.quiet.recordAct()
		if err := j.rest.waitForRest(ctx); err != nil {
			return err
		}
		if differences = j.differences(step, j.state()); len(differences) == 0 {
			return nil
		}
	}
	j.result.recordVerdict(finding.GaveUp, step, append([]finding.Difference{write}, differences...))
	return nil
}

// explainingWrites returns the writes that explain a wrong state of a run without faults: some fields cannot change,
// and the program has reported that to its user. It returns nil if nothing explains the state.
func (j *stepJudge) explainingWrites(step int) []string {
	writes := invalidWrites(j.requests(), step)
	if len(writes) == 0 || len(j.schedule.Faults) > 0 || step+1 == len(j.schedule.Steps) {
		return nil
	}
	isApplied := func(resource string) bool { return j.cluster.appliesKind(j.explorationSteps, resource) }
	if !hasReported(j.history(), step, j.options, isApplied) {
		return nil
	}
	return writes
}

// restartedConverge is how long the state may take to become right after the program was restarted.
const restartedConverge = 5 * time.Second

// judgeAfterRestart restarts the program, and judges whether the restart makes the state right.
func (j *stepJudge) judgeAfterRestart(ctx context.Context, step int, differences []finding.Difference) error {
	if err := j.replicas.replaceProcesses("the program is restarted, to see whether the state becomes right"); err != nil {
		return err
	}
	if err := j.rest.waitForRest(ctx); err != nil {
		return err
	}
	until := time.Now().Add(min(j.limits.converge, restartedConverge))
	for len(j.differences(step, j.state())) > 0 && time.Now().Before(until) {
		if err := clock.SleepReal(ctx, j.limits.window); err != nil { // a busy machine starts a program late
			return err
		}
		if err := j.catchUp(ctx); err != nil {
			return err
		}
	}
	switch state := j.state(); {
	case len(j.differences(step, state)) == 0:
		j.result.recordVerdict(finding.NeedsRestart, step, differences)
	case len(j.unexpected(step, state)) == 0:
		j.result.recordVerdict(finding.CheckFailed, step, differences)
	default:
		j.result.recordVerdict(finding.Wrong, step, differences)
	}
	return nil
}
