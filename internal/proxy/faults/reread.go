package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// Reread reads the samples twice in each version when the first step has come to rest, and writes them back in each
// version. Nothing may change.
const Reread Kind = "reread"

const (
	// rereadWait is the time between two reads. Times in objects have seconds.
	rereadWait = 1100 * time.Millisecond
	// maxRereads is how often the samples are read if somebody changes them meanwhile.
	maxRereads = 5
	// maxShownValue is how many bytes of a value a text has.
	maxShownValue = 200
)

// reread is the family of [Reread].
type reread struct{ baseFamily }

func (reread) Describe() Description {
	return Description{Kinds: []Kind{Reread}, IsDefault: true}
}

// Plan plans one run if a kind of the samples is converted.
func (reread) Plan(ctx context.Context, in *PlanInput) (Plan, error) {
	if !in.has(Reread) {
		return Plan{}, nil
	}
	converted, err := convertedResources(ctx, in.Cluster, in.SampleObjects)
	if err != nil {
		return Plan{}, err
	}
	if len(converted) == 0 {
		return newNotApplicable(whyNotConverted, Reread), nil
	}
	return newPlan([]Fault{{Kind: Reread}}), nil
}

// AfterStep reads the samples, and writes them back. It records the first field that was not the same.
func (reread) AfterStep(ctx context.Context, run *Run, f Fault) error {
	converted, err := convertedResources(ctx, run, run.SampleObjects)
	if err != nil {
		return err
	}
	samples, err := convertedSamplesOf(run, converted)
	if err != nil {
		return err
	}
	run.RecordFault(ByUser, f.String())
	for range maxRereads {
		before, err := readAll(ctx, samples)
		if err != nil {
			return err
		}
		if err := clock.SleepReal(ctx, rereadWait); err != nil {
			return err
		}
		after, err := readAll(ctx, samples)
		if err != nil {
			return err
		}
		if !areSameVersions(before, after) {
			continue
		}
		for i, s := range samples {
			if c, isChanged := firstChange("", contentOf(before[i]), contentOf(after[i])); isChanged {
				version := s.api.Resource().Version
				run.RecordReread(s.object, c.path, fmt.Sprintf("Somebody read the object twice in the version %s, and nobody changed it in between. First %s was %s, and then %s. The conversion to %s gives another result at each call. It must depend on the object alone, and not on the time, on chance or on memory",
					version, fieldText(c.path), c.was, c.is, version))
				return nil
			}
		}
		return writeBack(ctx, run, f, samples, before)
	}
	run.RecordMissed(f) // somebody changes the samples all the time
	return nil
}

// writeBack writes each object back in the version in which it was read. It records the first field that another
// version has otherwise after that.
func writeBack(
	ctx context.Context, run *Run, f Fault, samples []convertedSample, before []*unstructured.Unstructured,
) error {
	for i, s := range samples {
		version := s.api.Resource().Version
		_, err := s.api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace).Replace(ctx, before[i].DeepCopy())
		switch {
		case kube.IsConflict(err):
			run.RecordMissed(f) // somebody else has changed the object
			return nil
		case kube.IsInvalid(err):
			run.RecordReread(s.object, "", fmt.Sprintf(
				"Somebody read the object in the version %s, and wrote it back without a change. The API server refused that: %v",
				version, err))
			return nil
		case err != nil:
			return err
		}
		after, err := readAll(ctx, samples)
		if err != nil {
			return err
		}
		for j, other := range samples {
			if c, isChanged := firstChange("", contentOf(before[j]), contentOf(after[j])); isChanged {
				run.RecordReread(other.object, c.path, fmt.Sprintf("Somebody read the object in the version %s, and wrote it back without a change. In the version %s, %s was %s before that, and %s after it. The conversions there and back must give the same object",
					version, other.api.Resource().Version, fieldText(c.path), c.was, c.is))
				return nil
			}
		}
		before = after
	}
	return nil
}

// readAll reads objects.
func readAll(ctx context.Context, samples []convertedSample) (all []*unstructured.Unstructured, err error) {
	for _, s := range samples {
		object, err := s.api.Get(ctx, s.name)
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}

// areSameVersions reports whether objects have the same resource versions.
func areSameVersions(a, b []*unstructured.Unstructured) bool {
	return slices.EqualFunc(a, b,
		func(a, b *unstructured.Unstructured) bool { return a.GetResourceVersion() == b.GetResourceVersion() })
}

// contentOf returns an object without what the API server keeps itself.
func contentOf(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetGeneration(0)
	return object.Object
}

// fieldChange is a field with another value. The texts was and is are the values as JSON, or "nothing".
type fieldChange struct{ path, was, is string }

// firstChange returns the first field with another value, and reports whether there is one. The metadata come last.
// Example: {a: 1, b: {c: 2}} and {a: 1, b: {c: 3}} give b.c, 2 and 3.
func firstChange(path string, before, after any) (change fieldChange, isChanged bool) {
	if reflect.DeepEqual(before, after) {
		return fieldChange{}, false
	}
	a, isObject := before.(map[string]any)
	b, isOtherObject := after.(map[string]any)
	if !isObject || !isOtherObject {
		return fieldChange{path, valueText(before), valueText(after)}, true
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	delete(all, "metadata")
	for _, name := range append(slices.Sorted(maps.Keys(all)), "metadata") {
		below := name
		if path != "" {
			below = path + "." + name
		}
		if change, isChanged = firstChange(below, a[name], b[name]); isChanged {
			return change, true
		}
	}
	return fieldChange{path, valueText(before), valueText(after)}, true
}

// fieldText returns a path, or what stands for the whole object.
func fieldText(path string) string { return cmp.Or(path, "the object") }

// valueText returns a value as JSON, cut to a length.
func valueText(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text[:min(len(text), maxShownValue)])
}
