package faults

import (
	"context"
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

// ForeignManager is the field manager of other users and controllers.
const ForeignManager = "explorer-stranger"

// foreign is the family of faults by other users.
type foreign struct{ unknown }

func (foreign) Describe() Description {
	return Description{
		Group: "foreign", Kinds: []Kind{ForeignEdit, ForeignDelete, StripLabels, StripOwners},
		Beyond: []Kind{ForeignRecreate, StripFinalizers}, IsDefault: true,
	}
}

// Plan plans all kinds that change an object, for each object.
func (f foreign) Plan(_ context.Context, r *References) ([][]Fault, error) {
	d := f.Describe()
	var all []Fault
	for _, o := range r.Objects {
		for _, k := range r.asked(slices.Concat(d.Kinds, d.Beyond)...) {
			if isChange(k, o) {
				fault := Fault{Kind: k, Object: &o.Object}
				if k == ForeignEdit {
					fault.Edit = o.Edit
				}
				all = append(all, fault)
			}
		}
	}
	return oneRunEach(all), nil
}

// isChange reports whether a fault of a kind changes an object.
func isChange(k Kind, o WrittenObject) bool {
	object := unstructured.Unstructured{Object: o.Content}
	switch k {
	case ForeignEdit:
		return o.Edit != nil
	case StripLabels:
		return len(object.GetLabels()) > 0
	case StripOwners:
		return len(object.GetOwnerReferences()) > 0
	case StripFinalizers:
		return len(object.GetFinalizers()) > 0
	}
	return true
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
	remove := func(field string) any { return map[string]any{"metadata": map[string]any{field: nil}} }
	switch f.Kind {
	case ForeignEdit:
		_, err = api.Patch(ctx, name, kube.MergePatch(f.Edit))
	case ForeignDelete:
		err = api.Delete(ctx, name)
	case ForeignRecreate:
		err = recreate(ctx, api, object)
	case StripOwners:
		_, err = api.Patch(ctx, name, kube.MergePatch(remove("ownerReferences")))
	case StripFinalizers:
		_, err = api.Patch(ctx, name, kube.MergePatch(remove("finalizers")))
	case StripLabels:
		_, err = api.Patch(ctx, name, kube.MergePatch(remove("labels")))
	}
	if kube.IsNotFound(err) || isRefusedValue(err) { // the server refuses some edits
		run.RecordMissed(f)
		return nil
	}
	return err
}

// isRefusedValue reports whether the server has refused to store the values of an object.
func isRefusedValue(err error) bool { return kube.IsInvalid(err) || kube.IsBadRequest(err) }

// recreate deletes an object, and creates an object with its content and without its owners.
func recreate(ctx context.Context, api kube.API[unstructured.Unstructured], object *unstructured.Unstructured) error {
	if err := api.Delete(ctx, object.GetName()); err != nil {
		return err
	}
	second := object.DeepCopy()
	metadata := metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace(), Labels: object.GetLabels(), Annotations: object.GetAnnotations()}
	second.Object["metadata"] = map[string]any{}
	second.SetName(metadata.Name)
	second.SetNamespace(metadata.Namespace)
	second.SetLabels(metadata.Labels)
	second.SetAnnotations(metadata.Annotations)
	delete(second.Object, "status")
	_, err := api.Create(ctx, second)
	if kube.IsAlreadyExists(err) {
		return nil // the program was quicker
	}
	return err
}
