// Package children applies the children of an owner as a set, deletes what the set does not declare any more, and
// creates values that are generated once, such as passwords.
package children

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

// setLabel is the label of the children of a named set. Its value is the name of the set, a dot and the uid of the
// owner, as in web.0a1b2c3d-0000-4000-8000-000000000001.
const setLabel = "children.yare.dev/set"

// Set says how the children that one call of [Set.Apply] declares are applied, and what else the call does. The zero
// Set applies, and deletes nothing.
type Set struct {
	// Name is the name of the set, unique among the sets of an owner: lower-case letters, digits and hyphens, at most 26.
	// Each child of a named set gets the label children.yare.dev/set with this name and the uid of the owner. The name must
	// not change: children of the earlier name are never deleted. A child that moves from one set to another is deleted,
	// unless the other set is applied first.
	Name string
	// Prune deletes what an earlier call of this set has declared and this call does not. Only the call deletes: a
	// reconcile that returns before the call deletes nothing. The program needs the verb delete for the kinds:
	//
	//	controller.Owns[corev1.ConfigMap](controller.WriteVerbs(wire.VerbCreate, wire.VerbPatch, wire.VerbDelete))
	//
	// An object is deleted only if it has the label of the set, is controlled by the owner, and was applied by the field
	// manager of the client. So objects that were created, adopted by hand, or of another set stay. Nothing is deleted
	// after an error, or if the owner is being deleted or has changed since it was read. The owner and the children are
	// read live before. A deletion names uid and resource version, so the error of a child that changes meanwhile is a
	// conflict: see [kube.IsConflict]. The children of a deleted child are deleted too, in the background.
	//
	// Pruning looks at the kinds that the controller owns (controller.Owns), and at those of this call. Without anything
	// to delete, it sends no request for kinds that the cache has.
	Prune bool
	// AllowEmpty lets a call without objects prune. Otherwise such a call deletes nothing.
	AllowEmpty bool
	// KeepGoing applies the other objects after an error, and joins the errors. Nothing is pruned then. By default the
	// first error ends the call.
	KeepGoing bool
	// UntilReady prunes only if all declared children are ready, as package readiness defines it. So a child whose name has
	// changed leaves once its successor is ready. A child of a kind whose readiness is unknown keeps all others.
	UntilReady bool
	// PruneData prunes PersistentVolumeClaims, PersistentVolumes, Secrets, Namespaces and CustomResourceDefinitions too.
	// Otherwise they stay, and the log names them.
	PruneData bool
	// FormerKinds names kinds that earlier releases have declared in this set, and that the controller does not own any
	// more, such as new(corev1.ConfigMap). Each costs a list in each call, and needs controller.Reads with the verb list and
	// controller.Writes with the verb delete.
	FormerKinds []kube.Object
}

// Apply applies objects in their order as children of owner, as [kube.OwnedBy] and [kube.Apply] do. The objects can have
// different kinds, and can be unstructured. They are built for the call, which sets their owner reference and label.
// Apply returns the answers of the server, whose Go types are those of the objects. The first error ends Apply, which
// then returns the answers so far. With KeepGoing the answer of each object that failed is nil.
//
//	_, err := children.Set{Name: "web", Prune: true}.Apply(ctx, c, app, deployment(app), service(app))
//
// A mistake in the Set, an owner that was not read, and an object that is declared twice are errors before any request.
//
// More than ten deletions, and the deletion of all children of a kind, are logged as a warning before, with an event
// about the owner if the program has a recorder (package events). Children that this field manager has applied without
// a set, maybe in an earlier release, are logged once. They belong to the set when it applies them.
func (s Set) Apply(
	ctx context.Context, c *kube.Client, owner kube.Object, objects ...kube.Object,
) ([]kube.Object, error) {
	if err := s.check(owner, objects); err != nil {
		return nil, fmt.Errorf("children.Set %q: %w", s.Name, err)
	}
	answers := make([]kube.Object, 0, len(objects))
	var errs []error
	for _, obj := range objects {
		answer, err := kube.Apply(ctx, c, s.mark(owner, obj))
		if err != nil && !s.KeepGoing {
			return answers, err
		}
		answers, errs = append(answers, answer), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || !s.Prune {
		return answers, err
	}
	return answers, newPruning(ctx, s, c, owner, answers).run(ctx)
}

// check returns an error if the set, the owner or the objects of a call are not valid.
func (s Set) check(owner kube.Object, objects []kube.Object) error {
	if isNil(owner) || owner.GetUID() == "" {
		return errors.New("the owner has no uid: read it before its children are applied")
	}
	switch {
	case s.Name == "" && s.Prune:
		return errors.New("it prunes and has no name: set Name, so that it knows its children")
	case s.Name != "" && (len(s.Name) > 26 || len(validation.IsDNS1123Label(s.Name)) > 0):
		return errors.New("the name is not valid: use at most 26 lower-case letters, digits and hyphens")
	}
	if slices.ContainsFunc(s.FormerKinds, isNil) {
		return errors.New("a former kind is nil: leave it out")
	}
	declared := make(map[identity]bool, len(objects))
	for i, obj := range objects {
		if isNil(obj) {
			return fmt.Errorf("the object %d is nil: leave it out", i+1)
		}
		id := identityOf(obj)
		if declared[id] {
			return fmt.Errorf("%s %q is declared twice: declare each object once", id.Kind, id.name)
		}
		declared[id] = true
	}
	return nil
}

// mark returns obj as a child of owner that belongs to the set.
func (s Set) mark(owner, obj kube.Object) kube.Object {
	labels := maps.Clone(obj.GetLabels()) // a template or a selector can have the same map
	delete(labels, setLabel)              // maybe copied from an owner that is a child itself
	if s.Name != "" {
		if labels == nil {
			labels = make(map[string]string, 1)
		}
		labels[setLabel] = s.label(owner)
	}
	obj.SetLabels(labels)
	return kube.OwnedBy(owner, obj)
}

// label returns the value of the label of the children of owner.
func (s Set) label(owner kube.Object) string { return s.Name + "." + string(owner.GetUID()) }

// identity is what makes two declared objects the same, whatever their version.
type identity struct {
	schema.GroupKind
	namespace, name string
}

func identityOf(obj kube.Object) identity {
	return identity{kindOf(obj), obj.GetNamespace(), obj.GetName()}
}

// kindOf returns the group and the kind of obj.
func kindOf(obj kube.Object) schema.GroupKind {
	if t, err := kube.TypeOfObject(obj); err == nil {
		return t.Resource.GroupKind()
	}
	return obj.GetObjectKind().GroupVersionKind().GroupKind()
}

// isNil reports whether obj is nil, or a nil pointer.
func isNil(obj kube.Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
