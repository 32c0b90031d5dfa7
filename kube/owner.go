package kube

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

// Owner is an owner reference. It has no version, because an owner is the same object in all
// versions of its kind.
type Owner struct {
	// Group is empty for the core group.
	Group, Kind, Name string
	UID               types.UID
	// Controller is true for the owner that manages the object. An object has at most one such owner.
	Controller bool
}

// OwnedByLabel gives child the uid of owner as the value of a label, and returns child. Changes of child
// trigger a controller with controller.OwnsByLabel. In contrast to an owner reference the label works
// across namespaces, and the garbage collector ignores it. The owner must have been read. A new child loses the
// annotations versions.yare.dev/… of owner, as [OwnedBy] says.
//
// If a controller of the program declares the label, all clients of the program refuse to take over somebody else's
// object: see [ErrForeignChild]. A client outside of such a program applies the child as any object.
func OwnedByLabel[O Object](owner Object, label string, child O) O {
	labels := maps.Clone(child.GetLabels())
	if labels == nil {
		labels = make(map[string]string, 1)
	}
	labels[label] = string(owner.GetUID())
	child.SetLabels(labels)
	removeKeptValues(owner, child)
	return child
}

// OwnedBy makes owner the controlling owner of child, and returns child. The garbage
// collector deletes child after its owner. Changes of child trigger a controller that owns the
// kind of child. The owner must have been read, because the reference needs the owner's uid.
// Other owners stay. A new child loses the annotations versions.yare.dev/… that owner has too, in which conversions
// keep values of owner: so an author can copy the annotations of owner.
func OwnedBy[O Object](owner Object, child O) O {
	yes := true
	ref := metav1.OwnerReference{
		Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}
	if t, err := TypeOfObject(owner); err == nil {
		ref.APIVersion, ref.Kind = t.Resource.GroupVersion().String(), t.Resource.Kind
	} else {
		ref.APIVersion, ref.Kind = owner.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	refs := make([]metav1.OwnerReference, 0, len(child.GetOwnerReferences())+1)
	isPlaced := false
	for _, other := range child.GetOwnerReferences() {
		switch {
		case other.UID != ref.UID:
			refs = append(refs, other)
		case !isPlaced: // stays where it is, so that nothing moves when nothing changes
			refs, isPlaced = append(refs, ref), true
		}
	}
	if !isPlaced {
		refs = append(refs, ref)
	}
	child.SetOwnerReferences(refs)
	removeKeptValues(owner, child)
	return child
}

// removeKeptValues removes from a new child the annotations in which conversions between versions keep values of owner:
// an author has copied all annotations of owner, and the values do not belong to child. A child that was read keeps its
// annotations.
func removeKeptValues(owner, child Object) {
	if child.GetUID() != "" {
		return
	}
	annotations := child.GetAnnotations()
	hasKept := false
	for key := range annotations {
		hasKept = hasKept || isKeptValue(owner, key)
	}
	if !hasKept {
		return
	}
	annotations = maps.Clone(annotations) // owner can have the same map
	maps.DeleteFunc(annotations, func(key, _ string) bool { return isKeptValue(owner, key) })
	child.SetAnnotations(annotations)
}

// isKeptValue reports whether owner has an annotation of conversions with this key.
func isKeptValue(owner Object, key string) bool {
	if !strings.HasPrefix(key, ident.ConversionPrefix) {
		return false
	}
	_, has := owner.GetAnnotations()[key]
	return has
}
