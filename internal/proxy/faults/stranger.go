package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// The kinds of what a stranger adds to the objects that the program has made and to those of the user, when the first
// step has come to rest. Then somebody touches the objects of the user, and the program starts again, so that it
// reconciles all of them.
const (
	// StrangerMetadata adds a label, an annotation and a finalizer of the stranger's domain. The stranger removes the
	// finalizers again: from the user's objects in the first step in which the user deletes something, or else in the last
	// step, and before that from all other objects.
	StrangerMetadata Kind = "stranger-metadata"
	// StrangerItem adds an item to a list whose items have keys, such as a variable to the environment of a container.
	StrangerItem Kind = "stranger-item"
	// StrangerField sets a field that the program has not set.
	StrangerField Kind = "stranger-field"
)

// Stage is the part of a run of the family stranger that one fault has.
type Stage string

// The stages of a run.
const (
	// StageAdd adds something to an object.
	StageAdd Stage = "add"
	// StageReconcile makes the program reconcile: the objects of the user are touched, and the program starts again.
	StageReconcile Stage = "reconcile"
	// StageRelease removes the finalizers of the stranger from all objects.
	StageRelease Stage = "release"
)

const (
	// StrangerKey is the label, the annotation and the finalizer that a stranger adds.
	StrangerKey = "stranger.example.org/added"
	// strangerName is the name of what a stranger adds to lists.
	strangerName = "stranger-added"
)

// stranger is the family of faults by a stranger who only adds. Others who change or delete are the family [foreign].
type stranger struct{ baseFamily }

func (stranger) Describe() Description {
	return Description{
		Group: "stranger", Kinds: []Kind{StrangerMetadata, StrangerItem, StrangerField}, IsDefault: true,
		IsJudgedByRules: true,
	}
}

// Plan plans one run for each kind. The run has a fault for each object, a fault that makes the program reconcile, and
// for finalizers a fault that removes them.
func (s stranger) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	var plan Plan
	for _, k := range in.planned(s.Describe().Kinds...) {
		var all []Fault
		for _, o := range in.Objects {
			if k == StrangerMetadata || additionOf(k, o.Resource, o.Content) != nil {
				all = append(all, Fault{Kind: k, Stage: StageAdd, Object: &o.Object})
			}
		}
		if k == StrangerMetadata {
			for _, o := range in.SampleObjects {
				all = append(all, Fault{Kind: k, Stage: StageAdd, Object: &o})
			}
		}
		if len(all) == 0 {
			if plan.NotApplicable == nil {
				plan.NotApplicable = make(map[Kind]string)
			}
			plan.NotApplicable[k] = map[Kind]string{
				StrangerMetadata: "there is no object in the first step",
				StrangerItem:     "the program made no workload and no ServiceAccount",
				StrangerField:    "the program made no workload and no Service",
			}[k]
			continue
		}
		all = append(all, Fault{Kind: k, Stage: StageReconcile})
		if release := releaseStep(in.Steps); k == StrangerMetadata && release > 0 {
			all = append(all, Fault{Kind: k, Stage: StageRelease, Step: release})
		}
		plan.Runs = append(plan.Runs, all)
	}
	return plan, nil
}

// releaseStep returns the first step in which the user deletes something, or else the last step.
func releaseStep(steps []Step) int {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.HasDeletion })
	if i < 0 {
		i = len(steps) - 1
	}
	return i
}

func (stranger) Text(f Fault) string {
	switch f.Stage {
	case StageAdd:
		return fmt.Sprintf("%s at %s after step %d", f.Kind, f.Object, f.Step+1)
	case StageRelease:
		return fmt.Sprintf("%s: its finalizers are removed after step %d", f.Kind, f.Step+1)
	default:
		return fmt.Sprintf("%s: the user's objects are touched, and the program starts again", f.Kind)
	}
}

// fromEarlierFile sets the stage of a fault, which earlier versions did not write.
func (stranger) fromEarlierFile(f Fault) Fault {
	switch {
	case f.Stage != "":
	case f.Object != nil:
		f.Stage = StageAdd
	case f.Step > 0:
		f.Stage = StageRelease
	default:
		f.Stage = StageReconcile
	}
	return f
}

// AfterStep carries out the stage of a fault.
func (s stranger) AfterStep(ctx context.Context, run *Run, f Fault) error {
	switch f.Stage {
	case StageAdd:
		return s.add(ctx, run, f)
	case StageReconcile:
		return s.makeReconcile(ctx, run, f)
	case StageRelease:
		return removeAddedFinalizers(ctx, run, func(Object) bool { return true })
	}
	return fmt.Errorf("the fault %s has the act %q: use %s, %s or %s",
		f.Kind, f.Stage, StageAdd, StageReconcile, StageRelease)
}

// makeReconcile touches the objects of the user, and starts the program again. Then it removes the finalizers of the
// stranger from the objects that the user has not made.
func (stranger) makeReconcile(ctx context.Context, run *Run, f Fault) error {
	if err := run.WaitForRest(ctx); err != nil {
		return err
	}
	for _, o := range run.SampleObjects {
		annotation := map[string]any{StrangerKey + "-at": time.Now().Format(time.RFC3339Nano)}
		err := changeAsStranger(ctx, run, o, map[string]any{"metadata": map[string]any{"annotations": annotation}})
		if err != nil {
			return err
		}
	}
	if err := run.WaitForRest(ctx); err != nil {
		return err
	}
	if err := run.CrashProgram("the program starts again, so that it reconciles", true); err != nil {
		return err
	}
	if err := run.WaitForRest(ctx); err != nil {
		return err
	}
	if f.Kind != StrangerMetadata {
		return nil
	}
	// What holds the children is removed before their owners are deleted.
	return removeAddedFinalizers(ctx, run,
		func(o Object) bool { return !slices.Contains(run.SampleObjects, o) || run.IsLastStep(f.Step) })
}

// add adds to an object what the kind of a fault adds.
func (stranger) add(ctx context.Context, run *Run, f Fault) error {
	object, api, exists, err := run.Object(ctx, *f.Object)
	if err != nil {
		return err
	}
	if !exists || object.GetDeletionTimestamp() != nil {
		run.RecordMissed(f)
		return nil
	}
	run.RecordFault(ByUser, f.String())
	added := additionOf(f.Kind, f.Object.Resource, object.Object)
	if f.Kind == StrangerMetadata {
		added = map[string]any{"metadata": map[string]any{
			"labels": map[string]any{StrangerKey: "true"}, "annotations": map[string]any{StrangerKey: "true"},
			"finalizers": []any{StrangerKey},
		}}
	}
	if added == nil {
		run.RecordMissed(f)
		return nil
	}
	err = applyAsStranger(ctx, run, api, object, added)
	if kube.IsNotFound(err) || isRefusedValue(err) {
		run.RecordMissed(f)
		return nil
	}
	return err
}

// applyAsStranger applies fields of an object. An apply merges labels, finalizers and items of lists with those of
// others.
func applyAsStranger(
	ctx context.Context, run *Run, api kube.API[unstructured.Unstructured], object *unstructured.Unstructured,
	fields map[string]any,
) error {
	applied := &unstructured.Unstructured{Object: fields}
	applied.SetGroupVersionKind(object.GroupVersionKind())
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	_, err := api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace).Apply(ctx, applied)
	return err
}

// changeAsStranger sends a merge patch of an object that may be gone.
func changeAsStranger(ctx context.Context, run *Run, o Object, patch map[string]any) error {
	object, api, exists, err := run.Object(ctx, o)
	if err != nil || !exists {
		return err
	}
	_, err = api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace).Patch(ctx,
		object.GetName(), kube.MergePatch(patch))
	return kube.IgnoreNotFound(err)
}

// removeAddedFinalizers removes the finalizers of the stranger from the objects that isSelected selects.
func removeAddedFinalizers(ctx context.Context, run *Run, isSelected func(Object) bool) error {
	all, err := run.Objects(ctx)
	if err != nil {
		return err
	}
	for _, found := range all {
		object := found.Content
		if !isSelected(found.Object) || !slices.Contains(object.GetFinalizers(), StrangerKey) {
			continue
		}
		api, err := run.APIOf(object.GroupVersionKind(), run.Namespace)
		if err != nil {
			return err
		}
		_, err = api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace).Modify(ctx, object.GetName(),
			func(u *unstructured.Unstructured) error {
				u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(name string) bool { return name == StrangerKey }))
				return nil
			})
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// additionOf returns the fields that a stranger applies to an object, or nil if the kind adds nothing to an object of
// the resource. The program goes on to work with each of them.
func additionOf(k Kind, resource string, content map[string]any) map[string]any {
	spec := func(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }
	isSet := func(field string) bool {
		_, isSet, _ := unstructured.NestedFieldNoCopy(content, "spec", field)
		return isSet
	}
	switch resource {
	case "deployments.apps", "statefulsets.apps", "daemonsets.apps":
		containers, _, _ := unstructured.NestedSlice(content, "spec", "template", "spec", "containers")
		if k == StrangerItem && len(containers) > 0 {
			first, _ := containers[0].(map[string]any)
			variable := map[string]any{"name": "STRANGER_ADDED", "value": "true"}
			container := map[string]any{"name": first["name"], "env": []any{variable}}
			return spec(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}})
		}
		if k == StrangerField && !isSet("minReadySeconds") {
			return spec(map[string]any{"minReadySeconds": int64(1)})
		}
	case "services":
		if k == StrangerField && !isSet("publishNotReadyAddresses") {
			return spec(map[string]any{"publishNotReadyAddresses": true})
		}
	case "serviceaccounts":
		if k == StrangerItem {
			return map[string]any{"imagePullSecrets": []any{map[string]any{"name": strangerName}}}
		}
	}
	return nil
}
