package engine

import (
	"encoding/json"
	"slices"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// deletionOrderPlanner plans the runs of [faults.Deletion] in which the user deletes the samples one after the other.
type deletionOrderPlanner struct {
	settings Settings
	cluster  *cluster
}

// plan returns a run in the order of the file and a run in the reverse order, if there are two samples or more and the
// steps delete all of them.
func (p *deletionOrderPlanner) plan() ([]job, error) {
	first, last := p.settings.Steps[0], p.settings.Steps[len(p.settings.Steps)-1]
	if len(first.Apply) < 2 || len(p.settings.Steps) != 2 || len(last.Apply) > 0 || len(last.Delete) < len(first.Apply) {
		return nil, nil
	}
	var objects []faults.Object
	for _, raw := range first.Apply {
		object, err := p.cluster.objectOf(raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	reverse := slices.Clone(objects)
	slices.Reverse(reverse)
	return []job{p.inOrder(first.Apply, objects), p.inOrder(first.Apply, reverse)}, nil
}

// inOrder returns the run in which the user deletes the samples in an order.
func (p *deletionOrderPlanner) inOrder(samples []json.RawMessage, order []faults.Object) job {
	steps := []finding.Step{{Name: p.settings.Steps[0].Name, Apply: samples}}
	for _, object := range order {
		steps = append(steps, finding.Step{Name: "delete " + object.String(), Delete: []faults.Object{object}})
	}
	schedule := finding.Schedule{Seed: p.settings.Seed, Steps: steps, Comparison: finding.CompareEnd}
	return job{schedule: schedule, kind: faults.Deletion, changed: "the samples, beginning with " + order[0].String()}
}
