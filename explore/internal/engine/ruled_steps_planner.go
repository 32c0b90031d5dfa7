package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// ruledStepsPlanner plans runs with a fault that names their kind and disturbs nothing, and rules alone judge the runs:
// see [faults.Deletion], [faults.Clones], [faults.Pair], [faults.ManyChanges] and [faults.Waiting]. The runs of
// [comparedChangesPlanner] and of [deletionOrderPlanner] have no fault, and are compared.
type ruledStepsPlanner struct{ planner *planner }

// plan returns the runs of these kinds.
func (r *ruledStepsPlanner) plan(ctx context.Context, kinds []faults.Kind) (jobs []job, err error) {
	for _, each := range []struct {
		kind  faults.Kind
		steps func(context.Context) (steps []finding.Step, why string, err error)
	}{
		{faults.Deletion, r.deletion},
		{faults.Clones, r.clones},
		{faults.Pair, r.pair},
		{faults.ManyChanges, r.manyChanges},
		{faults.Waiting, r.waiting},
	} {
		if !slices.Contains(kinds, each.kind) {
			continue
		}
		steps, why, err := each.steps(ctx)
		if err != nil {
			return nil, err
		}
		if each.kind == faults.Deletion {
			inOrders, err := (&deletionOrderPlanner{r.planner.settings, r.planner.cluster}).plan()
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, inOrders...)
			if why != "" && len(inOrders) > 0 {
				continue
			}
		}
		if why != "" {
			r.planner.results.update(func(c *finding.Coverage) { c.NotApplicable[each.kind] = why })
			continue
		}
		j := r.planner.newJob(each.kind, "", faults.Fault{Kind: each.kind})
		j.schedule.Steps = steps
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// deletion returns the steps of the exploration, and after them the deletion of all objects. It returns why there is
// nothing to do if the steps end so themselves.
func (r *ruledStepsPlanner) deletion(context.Context) (steps []finding.Step, why string, err error) {
	steps = r.planner.settings.Steps
	own, err := ruleSteps(r.planner.cluster, steps)
	if err != nil {
		return nil, "", err
	}
	last := len(steps) - 1
	if !rules.DeletesAll(own, last) {
		return append(slices.Clone(steps), newDeletion(r.remainingObjects(own))), "", nil
	}
	if sorted := rules.SortedForDeletion(own, steps[last].Delete); !slices.Equal(sorted, steps[last].Delete) {
		return append(slices.Clone(steps[:last]), newDeletion(sorted)), "", nil
	}
	return nil, "the steps of the user end with the deletion in all runs", nil
}

// remainingObjects returns the objects that the user has applied and not deleted, in the order in which the user can
// delete them.
func (r *ruledStepsPlanner) remainingObjects(steps []rules.Step) (objects []faults.Object) {
	for _, step := range steps {
		for _, sample := range step.Applied {
			if !slices.Contains(objects, sample.Object) {
				objects = append(objects, sample.Object)
			}
		}
		objects = slices.DeleteFunc(objects, func(o faults.Object) bool { return slices.Contains(step.Deleted, o) })
	}
	return rules.SortedForDeletion(steps, objects)
}

// newDeletion returns a step that deletes objects.
func newDeletion(objects []faults.Object) finding.Step {
	return finding.Step{Name: "delete the samples", Delete: objects}
}

// cloneSuffix is the end of the names of the second samples.
const cloneSuffix = "-other"

// clones returns three steps: the user applies the samples of custom kinds a second time under other names, deletes the
// first ones, and deletes the rest. What the samples refer to is shared. A text that is the name of a sample becomes
// the name of its clone.
func (r *ruledStepsPlanner) clones(ctx context.Context) (steps []finding.Step, why string, err error) {
	p := r.planner
	first := finding.Step{Name: "apply the samples twice", Apply: slices.Clone(p.settings.Steps[0].Apply)}
	var originals []faults.Object
	var custom []*unstructured.Unstructured
	names := make(map[string]bool)
	for _, raw := range p.settings.Steps[0].Apply {
		sample, err := p.cluster.decode(raw, "")
		if err != nil {
			return nil, "", err
		}
		_, hasDefinition, err := p.definitionOf(ctx, sample)
		if err != nil {
			return nil, "", err
		}
		if !hasDefinition {
			continue
		}
		object, err := p.cluster.objectOf(raw)
		if err != nil {
			return nil, "", err
		}
		originals, custom = append(originals, object), append(custom, sample)
		names[sample.GetName()] = true
	}
	if len(custom) == 0 {
		return nil, "no sample is of a custom kind", nil
	}
	for _, sample := range custom {
		clone := &unstructured.Unstructured{Object: withCloneNames(sample.Object, names).(map[string]any)}
		clone.SetName(sample.GetName() + cloneSuffix)
		clone.SetNamespace("")
		refused, err := r.refusal(ctx, clone)
		if err != nil {
			return nil, "", err
		}
		if refused != "" {
			return nil, "the server refuses a second sample: " + refused, nil
		}
		raw, err := clone.MarshalJSON()
		if err != nil {
			return nil, "", err
		}
		first.Apply = append(first.Apply, raw)
	}
	own, err := ruleSteps(p.cluster, []finding.Step{first})
	if err != nil {
		return nil, "", err
	}
	rest := slices.DeleteFunc(r.remainingObjects(own), func(o faults.Object) bool { return slices.Contains(originals, o) })
	second := finding.Step{Name: "delete one of each", Delete: rules.SortedForDeletion(own, originals)}
	return []finding.Step{first, second, newDeletion(rest)}, "", nil
}

// pair returns four steps: the user applies the samples, applies the second samples, deletes those of the first ones
// that are of custom kinds and not among the second ones, and deletes the rest.
func (r *ruledStepsPlanner) pair(ctx context.Context) (steps []finding.Step, why string, err error) {
	p := r.planner
	if len(p.settings.PairSamples) == 0 {
		return nil, "there are no second samples: use --pairs, or explore.Settings.PairsFile", nil
	}
	steps = []finding.Step{p.settings.Steps[0], {Name: "apply the second samples", Apply: p.settings.PairSamples}}
	own, err := ruleSteps(p.cluster, steps)
	if err != nil {
		return nil, "", err
	}
	var first, rest []faults.Object
	for _, o := range r.remainingObjects(own) {
		isSame := func(s rules.Sample) bool { return s.Object == o }
		i := slices.IndexFunc(own[0].Applied, isSame)
		if i < 0 || slices.ContainsFunc(own[1].Applied, isSame) {
			rest = append(rest, o)
			continue
		}
		_, hasDefinition, err := p.definitionOf(ctx, &unstructured.Unstructured{Object: own[0].Applied[i].Content})
		switch {
		case err != nil:
			return nil, "", err
		case hasDefinition:
			first = append(first, o)
		default: // the second samples may refer to it
			rest = append(rest, o)
		}
	}
	return append(steps, finding.Step{Name: "delete the first samples", Delete: first}, newDeletion(rest)), "", nil
}

// withCloneNames returns a copy of a value in which each text that is one of the names has the suffix of clones.
func withCloneNames(value any, names map[string]bool) any {
	switch value := value.(type) {
	case string:
		if names[value] {
			return value + cloneSuffix
		}
	case map[string]any:
		copied := make(map[string]any, len(value))
		for name, inner := range value {
			copied[name] = withCloneNames(inner, names)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, inner := range value {
			copied[i] = withCloneNames(inner, names)
		}
		return copied
	}
	return value
}

// refusal returns why the server refuses to store an object, or an empty text.
func (r *ruledStepsPlanner) refusal(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	api, err := r.planner.cluster.APIOf(object.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return "", err
	}
	return values.DryRun(ctx, api, object.Object)
}

// manyChanges returns four steps: the user applies the first step, changes the first sample of a custom kind there and
// back in two steps, and deletes everything.
func (r *ruledStepsPlanner) manyChanges(ctx context.Context) (steps []finding.Step, why string, err error) {
	first := r.planner.settings.Steps[0]
	there, back, isFound, err := r.findChange(ctx, first.Apply)
	if err != nil || !isFound {
		return nil, "no sample is of a custom kind", err
	}
	steps = []finding.Step{first}
	for half := range 2 {
		step := finding.Step{Name: "change a sample " + strconv.Itoa(faults.ChangesInHalf) + " times", IsPaced: true}
		for i := range faults.ChangesInHalf {
			if (half*faults.ChangesInHalf+i)%2 == 0 {
				step.Apply = append(step.Apply, there)
			} else {
				step.Apply = append(step.Apply, back)
			}
		}
		steps = append(steps, step)
	}
	own, err := ruleSteps(r.planner.cluster, steps[:1])
	if err != nil {
		return nil, "", err
	}
	return append(steps, newDeletion(r.remainingObjects(own))), "", nil
}

// findChange returns a sample of a custom kind with another value of a field, and with the value before. A sample whose
// fields have no other values gets an annotation. It reports whether there is a sample of a custom kind.
func (r *ruledStepsPlanner) findChange(
	ctx context.Context, samples []json.RawMessage,
) (there, back json.RawMessage, isFound bool, err error) {
	for _, raw := range samples {
		sample, err := r.planner.cluster.decode(raw, "")
		if err != nil {
			return nil, nil, false, err
		}
		crd, hasDefinition, err := r.planner.definitionOf(ctx, sample)
		if err != nil {
			return nil, nil, false, err
		}
		if !hasDefinition {
			continue
		}
		definition, err := values.ParseDefinition(crd, sample.GroupVersionKind().Version)
		if err != nil {
			return nil, nil, false, err
		}
		all, _, err := values.Transitions(definition, sample.Object,
			values.Options{Values: r.planner.settings.Values, Seed: r.planner.settings.Seed})
		if err != nil {
			return nil, nil, false, err
		}
		for _, t := range all {
			if t.IsRemoval() { // the server may accept an object without a field, and still refuse to remove the field
				continue
			}
			changed := &unstructured.Unstructured{Object: t.Objects[0]}
			if refused, err := r.refusal(ctx, changed); err != nil || refused != "" {
				if err != nil {
					return nil, nil, false, err
				}
				continue
			}
			there, err = changed.MarshalJSON()
			return there, raw, true, err
		}
		sample.SetAnnotations(map[string]string{faults.ChangedAnnotation: "true"})
		there, err = sample.MarshalJSON()
		return there, raw, true, err
	}
	return nil, nil, false, nil
}

// waiting returns the first step alone.
func (r *ruledStepsPlanner) waiting(context.Context) (steps []finding.Step, why string, err error) {
	return r.planner.settings.Steps[:1:1], "", nil
}
