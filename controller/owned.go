package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
)

// Owns runs the reconcile of the owner when a C changes that the owner controls: see
// [kube.OwnedBy].
func Owns[C any, P kube.ObjectOf[C]](options ...SourceOption) Option {
	return newWatchOption(P(new(C)), options, newOwnerRelation)
}

// AnyOwner makes a source of [Owns] run the reconcile of every owner of a changed object: also of
// owners whose owner reference is not the controlling one.
func AnyOwner() SourceOption { return func(w *watchedKind) { w.isAnyOwner = true } }

var errNoOwners = errors.New("controller.AnyOwner is an option of controller.Owns: leave it out elsewhere")

// Writing sets the verbs with which the program writes the children of [Owns] or [OwnsByLabel], for the
// permissions of the program. The default is what an apply needs: create and patch; and, for
// OwnsByLabel, delete. Without verbs the program only watches the children.
//
//	controller.Owns[batchv1.Job](controller.Writing(kube.VerbCreate, kube.VerbDelete))
func Writing(verbs ...kube.Verb) SourceOption {
	return func(w *watchedKind) { w.writing, w.hasWriting = slices.Clone(verbs), true }
}

var errNoChildren = errors.New("controller.Writing is an option of controller.Owns and controller.OwnsByLabel: elsewhere declare writes by controller.Writes")

// ownerRelation connects a child with its controlling owner, or with all of its owners if isAny is
// true.
type ownerRelation struct{ isAny bool }

func newOwnerRelation(w *watchedKind) (relation, error) {
	return ownerRelation{isAny: w.isAnyOwner}, nil
}

func (ownerRelation) check(watched, reconciled kube.Resource) error {
	if watched.ClusterScoped && !reconciled.ClusterScoped {
		return fmt.Errorf("%s live in namespaces and %s outside of them, so one cannot own the other: label them, and write controller.OwnsByLabel",
			reconciled, watched)
	}
	return nil
}

func (ownerRelation) index() *kube.Index { return nil }

// writes returns the verbs of an apply that may create its object.
func (ownerRelation) writes() []kube.Verb { return []kube.Verb{kube.VerbCreate, kube.VerbPatch} }

func (ownerRelation) isSlow() bool { return false }

func (r ownerRelation) relatedKeys(_ context.Context, o watchedObject, to reconciledKind) (keys []relatedKey, err error) {
	for _, owner := range o.record.Owners {
		if !owner.Controller && !r.isAny || owner.Group != to.resource.Group || owner.Kind != to.resource.Kind {
			continue
		}
		t := relatedKey{Key: kube.Key{Cluster: o.cluster, Name: owner.Name}, uid: string(owner.UID)}
		if !to.resource.ClusterScoped {
			t.Namespace = o.record.Namespace
		}
		keys = append(keys, t)
	}
	return keys, nil
}
