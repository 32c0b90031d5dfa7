package kube

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
// across namespaces, and the garbage collector ignores it. The owner must have been read.
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
	return child
}

// OwnedBy makes owner the controlling owner of child, and returns child. The garbage
// collector deletes child after its owner. Changes of child trigger a controller that owns the
// kind of child. The owner must have been read, because the reference needs the owner's uid.
// Other owners stay.
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
	return child
}
