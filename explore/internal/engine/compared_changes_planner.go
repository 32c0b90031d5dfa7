package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// comparedChangesPlanner plans runs without a fault whose states are compared with those of other runs. The runs of
// [ruledStepsPlanner] have a fault that names their kind, and rules alone judge them.
type comparedChangesPlanner struct {
	settings Settings
	cluster  *cluster
	results  *results
	random   *rand.Rand
}

// plan returns the runs of those kinds that are among kinds.
func (p *comparedChangesPlanner) plan(ctx context.Context, kinds []faults.Kind) (jobs []job, err error) {
	for _, each := range []struct {
		kind faults.Kind
		plan func() ([]job, error)
	}{
		{faults.ObjectChange, (&objectChangePlanner{p.settings, p.cluster, p.results, p.random}).plan},
		{faults.SimilarNames, func() ([]job, error) {
			return (&similarNamesPlanner{p.settings, p.cluster, p.results}).plan(ctx)
		}},
	} {
		if !slices.Contains(kinds, each.kind) {
			continue
		}
		planned, err := each.plan()
		if err != nil {
			return nil, fmt.Errorf("plan the runs with %s: %w", each.kind, err)
		}
		jobs = append(jobs, planned...)
	}
	return jobs, nil
}
