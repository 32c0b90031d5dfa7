package engine

import (
	"context"
	"sync"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// ruleJudge checks the rules of package rules in each run, and adds what it finds to the results. Its methods are safe
// for concurrent use.
type ruleJudge struct {
	cluster *cluster
	options history.Options
	results *results
	// runWithoutRules makes a run, and checks no rules in it.
	runWithoutRules runFunc

	// mu is held while the run is made that shows ownObjects.
	mu sync.Mutex
	// hasOwnObjects is true once that run was made.
	hasOwnObjects bool
	// ownObjects are the objects that the program makes without any sample. They are nil if the run could not show them.
	ownObjects map[faults.Object]bool
}

// newRuleJudge returns the judge of the runs of a runner. runWithoutRules is [runner.runWithoutRules].
func newRuleJudge(c *cluster, o history.Options, r *results, runWithoutRules runFunc) *ruleJudge {
	return &ruleJudge{cluster: c, options: o, results: r, runWithoutRules: runWithoutRules}
}

// findOwnObjects returns the objects that the program makes without any sample, or nil if nobody knows. The first call
// makes a run.
func (j *ruleJudge) findOwnObjects(ctx context.Context) map[faults.Object]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hasOwnObjects {
		return j.ownObjects
	}
	limits := waitLimits{window: referenceWindow, rest: referenceRest}
	out, err := j.runWithoutRules(ctx, finding.Schedule{Steps: []finding.Step{{Name: "apply nothing"}}}, limits,
		expectAnyState)
	if ctx.Err() != nil {
		return nil // a later call makes the run
	}
	j.hasOwnObjects = true
	if err != nil || len(out.states) == 0 {
		return nil
	}
	j.results.update(func(c *finding.Coverage) { c.Runs, c.References = c.Runs+1, c.References+1 })
	j.ownObjects = make(map[faults.Object]bool)
	for _, v := range out.states[0].Objects() {
		j.ownObjects[out.states[0].ObjectOf(v)] = true
	}
	return j.ownObjects
}

// judge records in a result where the run breaks rules, and adds the findings.
func (j *ruleJudge) judge(ctx context.Context, s finding.Schedule, out *runResult) error {
	steps, err := ruleSteps(j.cluster, s.Steps)
	if err != nil {
		return err
	}
	r := &rules.Run{
		View: history.NewView(out.history, j.options), Steps: steps, Faults: s.Faults, States: out.states,
		Requests:   out.requests,
		Deliveries: out.deliveries, Observations: out.observations,
	}
	if rules.NeedsOwnObjects(r) {
		r.OwnObjects = j.findOwnObjects(ctx)
	}
	out.violations = rules.Judge(r, j.options.Accepted)
	j.results.addViolations(s, out, rules.Recreated(r))
	return nil
}

// exempt leaves out of all comparisons where the references break rules. Otherwise a run that is right there would
// differ from them.
func (j *ruleJudge) exempt(references []*runResult) {
	for _, out := range references {
		for _, v := range out.violations {
			if v.Severity != rules.Failure {
				continue
			}
			if len(v.Paths) == 0 {
				j.options.Accepted.Exempt(v.Object, "")
			}
			for _, path := range v.Paths {
				j.options.Accepted.Exempt(v.Object, path)
			}
		}
	}
}

// ruleSteps returns the steps of a user as rules judge them.
func ruleSteps(c *cluster, steps []finding.Step) (all []rules.Step, err error) {
	for _, step := range steps {
		own := rules.Step{Deleted: step.Delete}
		for _, raw := range step.Apply {
			object, err := c.objectOf(raw)
			if err != nil {
				return nil, err
			}
			content, err := c.decode(raw, "")
			if err != nil {
				return nil, err
			}
			own.Applied = append(own.Applied, rules.Sample{Object: object, Content: content.Object})
		}
		all = append(all, own)
	}
	return all, nil
}
