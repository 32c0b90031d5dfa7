package engine

import (
	"context"
	"sync"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// ruleJudge judges each run by the rules of package rules, and adds what it finds to the results. Its methods are safe for
// concurrent use.
type ruleJudge struct {
	cluster *cluster
	options history.Options
	results *results
	// ownObjects returns the objects that the program makes without any sample, or nil if nobody knows. The first call
	// makes a run.
	ownObjects func() map[faults.Object]bool
}

// newRuleJudge returns the judge of the runs of a runner. observe makes a run that nobody judges.
func newRuleJudge(ctx context.Context, c *cluster, o history.Options, r *results, observe runFunc) *ruleJudge {
	return &ruleJudge{cluster: c, options: o, results: r, ownObjects: sync.OnceValue(func() map[faults.Object]bool {
		limits := waitLimits{window: referenceWindow, rest: referenceRest}
		out, err := observe(ctx, finding.Schedule{Steps: []finding.Step{{Name: "apply nothing"}}}, limits, expectNothing)
		if err != nil || len(out.states) == 0 {
			return nil
		}
		r.update(func(c *finding.Coverage) { c.Runs, c.References = c.Runs+1, c.References+1 })
		own := make(map[faults.Object]bool)
		for _, v := range out.states[0].Objects() {
			own[out.states[0].ObjectOf(v)] = true
		}
		return own
	})}
}

// judge records in a result where the run breaks rules, and adds the findings.
func (j *ruleJudge) judge(s finding.Schedule, out *runResult) error {
	steps, err := ruleSteps(j.cluster, s.Steps)
	if err != nil {
		return err
	}
	r := &rules.Run{
		View: history.NewView(out.history, j.options), Steps: steps, Faults: s.Faults, States: out.states, Requests: out.requests,
		Deliveries: out.deliveries, Observations: out.observations, OwnObjects: j.ownObjects,
	}
	out.violations = rules.Judge(r, j.options.Accepted)
	j.results.addViolations(s, out, rules.Recreated(r))
	return nil
}

// exempt leaves out of all comparisons where the references break rules. Otherwise a run that is right there would differ
// from them.
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
