package faults

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// The kinds of what other users and controllers do to an object that the program has made, when the step has come
// to rest.
const (
	// ForeignEdit changes a field of the program. ForeignDelete deletes the object, and ForeignRecreate also creates an
	// object with the same content and without owners.
	ForeignEdit     Kind = "foreign-edit"
	ForeignDelete   Kind = "foreign-delete"
	ForeignRecreate Kind = "foreign-recreate"
	// StripOwners, StripFinalizers and StripLabels remove the owner references, the finalizers or the labels.
	StripOwners     Kind = "strip-owners"
	StripFinalizers Kind = "strip-finalizers"
	StripLabels     Kind = "strip-labels"
)

// ForeignManager is the field manager of everybody but the program and the user of a run, in all families. The word
// stranger in its value is older than the family [stranger].
const ForeignManager = "explorer-stranger"

// foreign is the family of faults by others who change or delete what the program has made. A [stranger] only adds.
type foreign struct{ baseFamily }

func (foreign) Describe() Description {
	return Description{
		Group: "foreign", Kinds: []Kind{ForeignEdit, ForeignDelete, StripLabels, StripOwners},
		OptIn: []Kind{ForeignRecreate, StripFinalizers}, IsDefault: true,
		WhyNotPlanned: "the program makes no object in the first step of which this can be changed",
	}
}

// Plan plans all kinds that change an object, for each object.
func (f foreign) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	d := f.Describe()
	var all []Fault
	for _, o := range in.Objects {
		for _, k := range in.planned(slices.Concat(d.Kinds, d.OptIn)...) {
			if canChange(k, o) {
				fault := Fault{Kind: k, Object: &o.Object}
				if k == ForeignEdit {
					fault.Edit = o.Edit
				}
				all = append(all, fault)
			}
		}
	}
	return newPlan(all), nil
}

// canChange reports whether a fault of a kind would change an object.
func canChange(k Kind, o WrittenObject) bool {
	if field := strippedField(k); field != "" {
		_, exists, _ := unstructured.NestedFieldNoCopy(o.Content, "metadata", field)
		return exists
	}
	return k != ForeignEdit || o.Edit != nil
}

// strippedField returns the field of the metadata that a kind removes, or an empty text.
func strippedField(k Kind) string {
	return map[Kind]string{StripOwners: "ownerReferences", StripFinalizers: "finalizers", StripLabels: "labels"}[k]
}

// AfterStep changes the object.
func (foreign) AfterStep(ctx context.Context, run *Run, f Fault) error {
	object, api, exists, err := run.Object(ctx, *f.Object)
	if err != nil {
		return err
	}
	if !exists {
		run.RecordMissed(f)
		return nil
	}
	run.RecordFault(ByUser, f.String())
	api, name := api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace), object.GetName()
	switch f.Kind {
	case ForeignEdit:
		_, err = api.Patch(ctx, name, kube.MergePatch(f.Edit))
	case ForeignDelete:
		err = api.Delete(ctx, name)
	case ForeignRecreate:
		err = recreate(ctx, api, object)
	default:
		_, err = api.Patch(ctx, name, kube.MergePatch(map[string]any{"metadata": map[string]any{strippedField(f.Kind): nil}}))
	}
	switch {
	case isRefusedValue(err):
		run.RecordNotApplicable(f, "the API server refuses the change of "+f.Object.String())
		return nil
	case kube.IsNotFound(err):
		run.RecordMissed(f)
		return nil
	}
	return err
}

// isRefusedValue reports whether the server has refused to store the values of an object.
func isRefusedValue(err error) bool {
	return kube.IsInvalid(err) || kube.HasReason(err, metav1.StatusReasonBadRequest)
}

// recreate deletes an object, and creates an object with its content and without its owners.
func recreate(ctx context.Context, api kube.API[unstructured.Unstructured], object *unstructured.Unstructured) error {
	if err := api.Delete(ctx, object.GetName()); err != nil {
		return err
	}
	second := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	delete(second.Object, "status")
	second.Object["metadata"] = map[string]any{}
	second.SetName(object.GetName())
	second.SetNamespace(object.GetNamespace())
	second.SetLabels(object.GetLabels())
	second.SetAnnotations(object.GetAnnotations())
	_, err := api.Create(ctx, second)
	if kube.IsAlreadyExists(err) {
		return nil // the program was quicker
	}
	return err
}
