package explore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/explore/values"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// maxChain is how many changes of the declared state follow one another in a run.
const maxChain = 10

// planTransitions returns runs in which the user changes fields of the samples there and back, up to
// maxChain changes in a run.
func (e *explorer) planTransitions(ctx context.Context) (jobs []job, err error) {
	for i, raw := range e.options.Steps[0].Apply {
		sample, err := e.decode(raw, "")
		if err != nil {
			return nil, err
		}
		crd, isCustom, err := e.definitionOf(ctx, sample)
		if err != nil {
			return nil, err
		}
		if !isCustom {
			continue
		}
		transitions, err := e.transitionsOf(ctx, sample, crd)
		if err != nil {
			return nil, err
		}
		for from := 0; from < len(transitions); {
			to := from + 1
			for to < len(transitions) && to-from < maxChain && transitions[to].Field == transitions[from].Field {
				to++
			}
			j, err := e.chain(i, raw, transitions[from:to])
			if err != nil {
				return nil, err
			}
			jobs, from = append(jobs, j), to
		}
	}
	return jobs, nil
}

// definitionOf returns the CRD of an object. It reports whether the object is of a custom kind.
func (e *explorer) definitionOf(ctx context.Context, object *unstructured.Unstructured) (crd []byte, isCustom bool, err error) {
	api, err := e.apiOf(object.GroupVersionKind(), "")
	if err != nil {
		return nil, false, err
	}
	definition, err := e.Definitions().Get(ctx, resourceName(api.Resource()))
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
func (e *explorer) transitionsOf(ctx context.Context, sample *unstructured.Unstructured, crd []byte) ([]values.Transition, error) {
	definition, err := values.ParseDefinition(crd, sample.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	all, fields, err := values.Transitions(definition, sample.Object, values.Options{Values: e.options.Values, Pairs: pairs, Seed: e.options.Seed})
	if err != nil {
		return nil, err
	}
	api, err := e.apiOf(sample.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return nil, err
	}
	api = api.For(e.client.WithFieldManager(userManager), dryRunNamespace)
	e.coverage.Transitions.Total += len(all)
	var accepted []values.Transition
	for _, t := range all {
		steps, err := stepsOf(sample.Object, t)
		if err != nil {
			return nil, err
		}
		refused := ""
		for _, object := range steps {
			object = merge(object, "metadata", "namespace", dryRunNamespace)
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
			e.coverage.Refused++
		}
	}
	for _, field := range fields {
		e.coverage.Fields.Total++
		if slices.ContainsFunc(accepted, func(t values.Transition) bool { return t.Field == field.Path }) {
			e.coverage.Fields.Done++
		} else {
			e.coverage.FieldsWithoutValues[field.Path] = cmp.Or(field.Reason, "the server refused all values")
		}
	}
	return accepted, nil
}

// dryRunNamespace is where values are tried without storing them.
const dryRunNamespace = "default"

// pairs is how many pairs of fields are changed at once.
const pairs = 4

// stepsOf returns the objects that the user applies one after the other, before the sample again.
func stepsOf(sample map[string]any, t values.Transition) (objects []map[string]any, err error) {
	object := sample
	for _, patch := range []json.RawMessage{t.Start, t.Patch} {
		if patch == nil {
			continue
		}
		if object, err = values.Merge(object, patch); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// merge returns object with another value of a nested field. The last element of path is the value.
func merge(object map[string]any, path ...string) map[string]any {
	changed := maps.Clone(object)
	inner, _ := changed[path[0]].(map[string]any)
	inner = maps.Clone(inner)
	inner[path[1]] = path[2]
	changed[path[0]] = inner
	return changed
}

// chain returns the run that applies the sample, and then the values of each transition and the sample
// again.
func (e *explorer) chain(index int, sample json.RawMessage, transitions []values.Transition) (job, error) {
	first := e.options.Steps[0]
	steps := []schedule.Step{first}
	var changed []int
	with := func(raw json.RawMessage) []json.RawMessage {
		objects := slices.Clone(first.Apply)
		objects[index] = raw
		return objects
	}
	var object map[string]any
	if err := json.Unmarshal(sample, &object); err != nil {
		return job{}, err
	}
	for _, t := range transitions {
		objects, err := stepsOf(object, t)
		if err != nil {
			return job{}, err
		}
		for _, o := range objects {
			raw, err := json.Marshal(o)
			if err != nil {
				return job{}, err
			}
			steps = append(steps, schedule.Step{Name: t.String(), Apply: with(raw)})
		}
		changed = append(changed, len(steps)-1)
		steps = append(steps, schedule.Step{Name: t.Field + ": as in the sample", Apply: first.Apply})
	}
	return job{schedule: schedule.Schedule{Seed: e.options.Seed, Steps: steps}, kind: faults.Transition, field: transitions[0].Field, changed: changed}, nil
}

// stepError is an error in a step of the user.
type stepError struct {
	index int
	name  string
	err   error
}

// Error implements error.
func (e *stepError) Error() string { return fmt.Sprintf("step %d (%s): %v", e.index+1, e.name, e.err) }

// Unwrap returns the error itself.
func (e *stepError) Unwrap() error { return e.err }

// withoutRefused returns the run without the step whose values the server has refused, if that is the
// error. A dry run does not show that the server refuses the way from one value to the next.
func withoutRefused(j job, err error) (job, bool) {
	failed, ok := errors.AsType[*stepError](err)
	if !ok || j.field == "" || failed.index == 0 || !kube.IsInvalid(failed) {
		return j, false
	}
	j.schedule.Steps = slices.Delete(slices.Clone(j.schedule.Steps), failed.index, failed.index+1)
	return j, true
}
