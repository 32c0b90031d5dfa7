package controller

// The options that connect another kind with the reconciled kind: Owns, OwnsByLabel, Watches and their own options. The
// file watched_kind.go has the watchedKind that these options make.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Owns runs the reconcile of the owner when a C changes that the owner controls: see
// [kube.OwnedBy]. The program may then create and patch a C. [WriteVerbs] names other verbs, such as delete.
func Owns[C any, P kube.ObjectOf[C]](options ...KindOption) Option {
	return newWatchOption(P(new(C)), options,
		func(w *watchedKind) (relation.Relation, error) { return relation.Owner{IsAny: w.isAnyOwner}, nil })
}

// AnyOwner makes a source of [Owns] run the reconcile of every owner of a changed object: also of
// owners whose owner reference is not the controlling one.
func AnyOwner() KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.isAnyOwner = true })
}

var errAnyOwnerWithoutOwns = errors.New("controller.AnyOwner is an option of controller.Owns: leave it out elsewhere")

// WriteVerbs sets the verbs with which the program writes the children of [Owns] or [OwnsByLabel], for the
// permissions of the program. The default is what an apply needs: create and patch; and, for
// OwnsByLabel, delete. The given verbs take the place of the default. Without verbs the program only watches the
// children. The verbs are constants of package kube/wire.
//
//	controller.Owns[batchv1.Job](controller.WriteVerbs(wire.VerbCreate, wire.VerbDelete))
func WriteVerbs(verbs ...wire.Verb) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.ownWriteVerbs, w.hasWriteVerbs = slices.Clone(verbs), true })
}

var errWriteVerbsWithoutChildren = errors.New("controller.WriteVerbs is an option of controller.Owns and controller.OwnsByLabel: elsewhere declare writes by controller.Writes")

// OwnsByLabel runs the reconcile of the object whose uid is the value of a label of a C, when the C changes:
// see [kube.OwnedByLabel]. In contrast to an owner reference, a label works across namespaces, and between
// namespaced and cluster-scoped kinds. The label holds the uid, because a name may be longer than a label's
// value. The cache indexes the label.
//
// The garbage collector does not know the label. So the controller needs a [Controller.Finalizer] whose
// cleanup deletes the children:
//
//	children, err := kube.List[corev1.Namespace](ctx, c, "", kube.Label("tenant.example.com/uid", string(tenant.UID)))
//
// The child of somebody else is not taken over: see [kube.ErrForeignChild]. If the label of the child has the uid of
// another object of the reconciled kind, that object is its owner. While that owner exists, the child is refused,
// also with [kube.Adopt].
func OwnsByLabel[C any, P kube.ObjectOf[C]](label string, options ...KindOption) Option {
	return newWatchOption(P(new(C)), options, func(w *watchedKind) (relation.Relation, error) {
		w.labelIndexes = append(w.labelIndexes, label)
		if problems := validation.IsQualifiedName(label); len(problems) > 0 {
			return relation.Label{Name: label}, fmt.Errorf("the label %q of controller.OwnsByLabel is not valid: %s",
				label, problems[0])
		}
		return relation.Label{Name: label}, nil
	})
}

// WatchesReferenced runs the reconcile of the objects that refer to an S when the S changes. The index
// is an index of the reconciled kind. Its function returns what an object refers to: the name of each S
// in the object's own namespace, and namespace/name of each S in another namespace. If S is cluster-scoped, its
// function returns the name alone. If the reconciled kind is cluster-scoped, its function returns namespace/name. An
// empty name refers to nothing. Of Secrets only the metadata is kept: see [KeepSecrets].
//
//	var bySettings = kube.NewIndex("settings", func(w *WebApp) []string { return []string{w.Spec.Settings} })
//
//	controller.New(reconcile, controller.WatchesReferenced[corev1.ConfigMap](bySettings))
//
// The index can be used in lists of the reconciled kind too. An object for which the index
// function panics is reconciled when any S changes.
func WatchesReferenced[S any, P kube.ObjectOf[S]](index *kube.Index, options ...KindOption) Option {
	return newWatchOption(P(new(S)), options,
		func(*watchedKind) (relation.Relation, error) { return relation.Reference{By: index}, nil })
}

// Watches runs the reconcile of the objects whose keys the map function keys returns when an S changes. The
// controller calls keys with the S as it is after the change, and as it was before. So an object is
// reconciled too if an S no longer refers to the object. The S is the function's own copy.
//
//	// A Policy concerns the WebApps that its label selects.
//	controller.Watches(func(ctx context.Context, p *Policy, c *kube.Client) ([]kube.Key, error) {
//		apps, err := kube.List[WebApp](ctx, c, p.Namespace, kube.Label("tier", p.Spec.Tier))
//		return kube.KeysOf(apps...), err
//	})
//
// The client reads what the sources of the controller show, from the cache. It refuses writes, and reads that
// no source covers, with an error. The controller calls keys only once all of its sources are synced. If keys
// returns an error or panics, the controller logs the error or panic, triggers the objects whose keys came
// with the error, and calls keys again with growing intervals.
//
// Keys with an empty name, and keys of objects that the controller does not watch, are skipped. A key
// without a namespace is an error that is logged, unless the reconciled kind is cluster-scoped.
//
// The calls of one controller are made one after the other, in a goroutine of their own, so a slow
// function delays only its own controller. Besides, a reconcile that applies an S calls keys, in its
// own goroutine, to find out whether the apply can be skipped. So keys must be safe for concurrent
// use, depend on nothing but the S and what it reads, and may be called more than once with the
// same state. An S that does not fit its type is logged, and triggers nothing. The S of a Secret has
// metadata only, unless [KeepSecrets] is among the options.
func Watches[S any, P kube.ObjectOf[S]](
	keys func(ctx context.Context, s *S, c *kube.Client) ([]kube.Key, error), options ...KindOption,
) Option {
	return newWatchOption(P(new(S)), options, func(w *watchedKind) (relation.Relation, error) {
		m := relation.Map{Watched: w.kind.Resource}
		if keys == nil {
			return m, fmt.Errorf(
				"the map function of %s is nil: give one that returns the keys of the objects that a change concerns", m.Watched)
		}
		m.Function = func(ctx context.Context, c *kube.Client, object []byte) (related []kube.Key, err error) {
			s, err := kube.APIOf[S, P](c, w.kind, "").Decode(object)
			if err != nil {
				return nil, &relation.LastingError{Err: err}
			}
			what := "the map function"
			err = recoverPanic(&what, func() (err error) {
				related, err = keys(ctx, s, c)
				return err
			})
			return related, err
		}
		return m, nil
	})
}
