package explore

import (
	"context"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/schedule"
)

// minimizeBudget is how long a schedule is minimized.
const minimizeBudget = time.Minute

// minimize removes steps from the schedule of a finding, as long as the verdict stays the same. The
// first step and the step after which the verdict was found stay. A step that a fault belongs to stays
// too.
func (e *explorer) minimize(ctx context.Context, j job, f *finding.Finding) error {
	if len(f.Schedule.Steps) < 3 || j.field == "" {
		return nil
	}
	steps := f.Schedule.Steps
	for size, until := len(steps)/2, time.Now().Add(minimizeBudget); size > 0; size /= 2 {
		for from := 1; from+size < len(steps); {
			if time.Now().After(until) {
				return nil
			}
			fewer := slices.Delete(slices.Clone(steps), from, from+size)
			s := schedule.Schedule{Seed: f.Schedule.Seed, Steps: fewer}
			judge, err := e.judgeValues(ctx, s)
			if err != nil {
				return err
			}
			out, err := e.run(ctx, s, e.wait, judge)
			if _, refused := withoutRefused(j, err); refused {
				from += size
				continue
			}
			if err != nil {
				return err
			}
			e.countRun(&e.coverage.Runs)
			e.judgeHistory(j, out)
			if out.problem != f.Verdict {
				from += size
				continue
			}
			steps = fewer[:out.problemStep+1]
			f.Schedule, f.Differences, f.Trace = schedule.Schedule{Seed: s.Seed, Steps: steps}, out.differences, out.trace
		}
	}
	return nil
}
