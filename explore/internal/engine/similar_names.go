package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// similarNamesPlanner plans the run of [faults.SimilarNames]: the user adds clones of the custom objects of the
// samples, whose names are alike.
type similarNamesPlanner struct {
	settings Settings
	cluster  *cluster
	results  *results
}

// namePair is how a pair of clones is named.
type namePair struct {
	text string
	// first and second return the names of the clones of an object.
	first, second func(name string) string
	// isSplit is true if the first clone is deleted in the end.
	isSplit bool
}

// namePairs returns the pairs of names. Programs add a suffix to a name and cut the result to the 63 characters of a
// label, and a name may have 253 characters.
func namePairs() []namePair {
	appending := func(suffix string) func(string) string {
		return func(name string) string { return name + suffix }
	}
	pairs := []namePair{
		{text: "the sample's name, then a hyphen or a dot", first: appending("-x"), second: appending(".x")},
	}
	for _, length := range []int{50, 57, 61, 240} {
		sharing := func(end string) func(string) string {
			return func(name string) string {
				return (name + "-" + strings.Repeat("l", max(0, length-len(name)-1)))[:max(length, len(name)+1)] + end
			}
		}
		pairs = append(pairs, namePair{
			text: fmt.Sprintf("the first %d characters in common", length), first: sharing("a"), second: sharing("b"),
			isSplit: true,
		})
	}
	return pairs
}

// plan returns one run, or none if no sample is of a custom kind. In the last step the user deletes the samples and one
// clone of some pairs, and the children of all others must stay.
func (p *similarNamesPlanner) plan(ctx context.Context) ([]job, error) {
	originals, err := p.decodeAll(p.settings.Steps[0].Apply)
	if err != nil {
		return nil, err
	}
	originals = slices.DeleteFunc(originals, func(o *unstructured.Unstructured) bool { return !hasCustomGroup(o) })
	if len(originals) == 0 {
		p.results.update(func(c *finding.Coverage) { c.NotApplicable[faults.SimilarNames] = "no sample is of a custom kind" })
		return nil, nil
	}
	others, referred, err := p.others(originals)
	if err != nil {
		return nil, err
	}
	plain := renamed(others, func(name string) string { return "other-" + name })
	steps := []finding.Step{
		p.settings.Steps[0],
		{Name: "apply a clone with another name", Apply: slices.Concat(referred, marshalObjects(plain))},
	}
	last := finding.Step{Name: "delete one of the objects with similar names"}
	if last.Delete, err = p.objectsOf(originals); err != nil {
		return nil, err
	}
	for _, pair := range namePairs() {
		left, right := renamed(originals, pair.first), renamed(others, pair.second)
		step := finding.Step{Name: "apply clones with " + pair.text, Apply: marshalObjects(append(left, right...))}
		refusal, err := p.dryRun(ctx, append(left, right...))
		if err != nil {
			return nil, err
		}
		if refusal != "" {
			p.results.update(func(c *finding.Coverage) {
				c.FieldsWithoutValues["metadata.name with "+pair.text] = "the server refuses: " + refusal
			})
			continue
		}
		steps = append(steps, step)
		if pair.isSplit {
			deleted, err := p.objectsOf(left)
			if err != nil {
				return nil, err
			}
			last.Delete = append(last.Delete, deleted...)
		}
	}
	schedule := finding.Schedule{Seed: p.settings.Seed, Steps: append(steps, last), Comparison: finding.CompareChildren}
	return []job{{schedule: schedule, kind: faults.SimilarNames, changed: "the samples"}}, nil
}

// others returns the objects that the second clone of each pair is made of, and the objects that they refer to. They
// are those of the pairs of the settings, or the samples themselves.
func (p *similarNamesPlanner) others(
	originals []*unstructured.Unstructured,
) (others []*unstructured.Unstructured, referred []json.RawMessage, err error) {
	for _, o := range originals {
		other := secondOf(p.settings.PairSamples, o)
		if other == nil {
			other = o
		}
		others = append(others, other)
	}
	pairs, err := p.decodeAll(p.settings.PairSamples)
	if err != nil {
		return nil, nil, err
	}
	return others, marshalObjects(slices.DeleteFunc(pairs, hasCustomGroup)), nil
}

func (p *similarNamesPlanner) decodeAll(all []json.RawMessage) (objects []*unstructured.Unstructured, err error) {
	for _, raw := range all {
		object, err := p.cluster.decode(raw, "")
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// objectsOf returns the resources and names of objects.
func (p *similarNamesPlanner) objectsOf(all []*unstructured.Unstructured) (objects []faults.Object, err error) {
	for _, o := range all {
		object, err := p.cluster.objectOf(marshalObject(o))
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// dryRun returns why the server refuses one of the objects, or an empty text.
func (p *similarNamesPlanner) dryRun(
	ctx context.Context, objects []*unstructured.Unstructured,
) (refusal string, err error) {
	for _, o := range objects {
		api, err := p.cluster.APIOf(o.GroupVersionKind(), dryRunNamespace)
		if err != nil {
			return "", err
		}
		tried := o.DeepCopy()
		tried.SetNamespace(dryRunNamespace)
		if refusal, err = values.DryRun(ctx, api, tried.Object); refusal != "" || err != nil {
			return refusal, err
		}
	}
	return "", nil
}

// renamed returns copies of objects with other names.
func renamed(objects []*unstructured.Unstructured, rename func(name string) string) (all []*unstructured.Unstructured) {
	for _, o := range objects {
		clone := o.DeepCopy()
		clone.SetName(rename(o.GetName()))
		all = append(all, clone)
	}
	return all
}
