package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/schedule"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// maxChain is how many changes of the declared state follow one another in a run.
const maxChain = 10

// transitionPlanner plans the runs in which the user changes fields of the samples.
type transitionPlanner struct {
	cluster  *cluster
	settings Settings
	results  *results
}

func newTransitionPlanner(c *cluster, s Settings, r *results) *transitionPlanner {
	return &transitionPlanner{c, s, r}
}

// plan returns runs in which the user changes fields of the samples there and back, up to
// maxChain changes in a run.
func (p *transitionPlanner) plan(ctx context.Context) (jobs []job, err error) {
	for i, raw := range p.settings.Steps[0].Apply {
		sample, err := p.cluster.decode(raw, "")
		if err != nil {
			return nil, err
		}
		crd, isCustom, err := p.definitionOf(ctx, sample)
		if err != nil {
			return nil, err
		}
		if !isCustom {
			continue
		}
		transitions, err := p.transitionsOf(ctx, sample, crd)
		if err != nil {
			return nil, err
		}
		for from := 0; from < len(transitions); {
			to := from + 1
			for to < len(transitions) && to-from < maxChain && transitions[to].Field == transitions[from].Field {
				to++
			}
			j, err := p.chain(i, transitions[from:to])
			if err != nil {
				return nil, err
			}
			jobs, from = append(jobs, j), to
		}
	}
	return jobs, nil
}

// definitionOf returns the CRD of an object. It reports whether the object is of a custom kind.
func (p *transitionPlanner) definitionOf(ctx context.Context, object *unstructured.Unstructured) (crd []byte, isCustom bool, err error) {
	api, err := p.cluster.apiOf(object.GroupVersionKind(), "")
	if err != nil {
		return nil, false, err
	}
	definition, err := p.cluster.Definitions().Get(ctx, resourceName(api.Resource()))
	switch {
	case kube.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	crd, err = definition.MarshalJSON()
	return crd, true, err
}

// transitionsOf returns the transitions of a sample that the server accepts, and records what is
// covered.
func (p *transitionPlanner) transitionsOf(ctx context.Context, sample *unstructured.Unstructured, crd []byte) ([]values.Transition, error) {
	definition, err := values.ParseDefinition(crd, sample.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	all, fields, err := values.Transitions(definition, sample.Object, values.Options{Values: p.settings.Values, Pairs: pairs, Seed: p.settings.Seed})
	if err != nil {
		return nil, err
	}
	api, err := p.cluster.apiOf(sample.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return nil, err
	}
	api = api.For(p.cluster.client.WithFieldManager(userManager), dryRunNamespace)
	refusals := 0
	var accepted []values.Transition
	for _, t := range all {
		refused := ""
		for _, object := range t.Objects {
			if refused, err = values.DryRun(ctx, api, object); err != nil {
				return nil, err
			}
			if refused != "" {
				break
			}
		}
		if refused == "" {
			accepted = append(accepted, t)
		} else {
			refusals++
		}
	}
	p.results.update(func(c *finding.Coverage) {
		c.Transitions.Total += len(all)
		c.Refused += refusals
		for _, field := range fields {
			c.Fields.Total++
			if slices.ContainsFunc(accepted, func(t values.Transition) bool { return t.Field == field.Path }) {
				c.Fields.Done++
			} else {
				c.FieldsWithoutValues[field.Path] = cmp.Or(field.Reason, "the server refused all values")
			}
		}
	})
	return accepted, nil
}

// dryRunNamespace is where values are tried without storing them.
const dryRunNamespace = "default"

// pairs is how many pairs of fields are changed at once.
const pairs = 4

// chain returns the run that applies the sample, and then, for each transition, its values and the sample.
func (p *transitionPlanner) chain(index int, transitions []values.Transition) (job, error) {
	first := p.settings.Steps[0]
	steps := []schedule.Step{first}
	var changed []int
	with := func(raw json.RawMessage) []json.RawMessage {
		objects := slices.Clone(first.Apply)
		objects[index] = raw
		return objects
	}
	for _, t := range transitions {
		for _, o := range t.Objects {
			raw, err := json.Marshal(o)
			if err != nil {
				return job{}, err
			}
			steps = append(steps, schedule.Step{Name: t.String(), Apply: with(raw)})
		}
		changed = append(changed, len(steps)-1)
		steps = append(steps, schedule.Step{Name: t.Field + ": as in the sample", Apply: first.Apply})
	}
	return job{schedule: schedule.Schedule{Seed: p.settings.Seed, Steps: steps}, kind: faults.Transition, field: transitions[0].Field, changed: changed}, nil
}
