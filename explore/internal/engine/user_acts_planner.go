package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// userActsPlanner plans the runs without faults in which users change whole objects of the samples.
type userActsPlanner struct {
	settings Settings
	cluster  *cluster
	results  *results
	random   *rand.Rand
}

// plan returns the runs of those kinds that are among kinds.
func (p *userActsPlanner) plan(ctx context.Context, kinds []faults.Kind) (jobs []job, err error) {
	for _, each := range []struct {
		kind faults.Kind
		plan func() ([]job, error)
	}{
		{faults.ObjectChange, (&objectChangePlanner{*p}).plan},
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

// warnOfUnchanged adds a warning if no field of the samples has another value in any run.
func warnOfUnchanged(c *finding.Coverage) {
	if c.Fields.Total > 0 && c.Fields.Done == 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("None of the %d fields of the samples has another value in any run: "+
			"the mistakes that a change shows are not found. --values names a second sample.", c.Fields.Total))
	}
}

// valuesOf returns what the fields of a sample are changed to.
func valuesOf(sample *unstructured.Unstructured, s Settings) values.Options {
	options := values.Options{Values: s.Values, Pairs: fieldPairs, Seed: s.Seed}
	if second := secondOf(s.SecondSamples, sample); second != nil {
		options.Second = second.Object
	}
	return options
}
