package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// isDeletionStep reports whether an object is gone, or its deletion begins with c. A deletion has up to
// two steps: the server sets the deletionTimestamp, and removes the object when its last finalizer is
// removed.
func isDeletionStep(c cache.Change) bool {
	return c.Type == cache.Deleted || c.After.Deleting && (c.Type == cache.Added || !c.Before.Deleting)
}

// Predicate reports whether a change matters. It is called concurrently, in the goroutines of
// the streams, so it must not block. A change for which it panics matters.
type Predicate func(Change) bool

// Any returns a predicate that returns true if at least one of predicates returns true.
func Any(predicates ...Predicate) Predicate {
	return func(c Change) bool {
		return slices.ContainsFunc(predicates, func(p Predicate) bool { return p(c) })
	}
}

// GenerationChanged reports whether c is an addition or a deletion, metadata.generation has changed,
// or the deletion of the object has begun. The generation counts the changes of the spec. Other
// modifications of kinds without a generation, such as ConfigMap, do not count.
func GenerationChanged(c Change) bool {
	return hasChanged(c, func(before, after Record) bool {
		return before.Generation != after.Generation || before.Deleting != after.Deleting
	})
}

// LabelsChanged reports whether c is an addition or a deletion, or the labels have changed.
func LabelsChanged(c Change) bool {
	return hasChanged(c, func(before, after Record) bool { return !hasSameLabels(before, after) })
}

// hasSameLabels reports whether two records have the same labels.
func hasSameLabels(a, b Record) bool {
	x, isStored := a.Labels.(*cache.Labels)
	if y, ok := b.Labels.(*cache.Labels); ok && isStored {
		return *x == *y
	}
	return reflect.DeepEqual(a.Labels, b.Labels)
}

// AnnotationsChanged reports whether c is an addition or a deletion, or the annotations have
// changed.
func AnnotationsChanged(c Change) bool {
	return hasChanged(c, func(before, after Record) bool { return before.AnnotationsHash != after.AnnotationsHash })
}

// FinalizersChanged reports whether c is an addition or a deletion, or the finalizers have
// changed.
func FinalizersChanged(c Change) bool {
	return hasChanged(c, func(before, after Record) bool { return before.FinalizersHash != after.FinalizersHash })
}

// hasChanged reports whether c is an addition or a deletion, or its records differ.
func hasChanged(c Change, differ func(before, after Record) bool) bool {
	return c.Type != Modified || c.Before.UID != c.After.UID || differ(c.Before, c.After)
}

// Changed restricts the changes that matter: f must return true for a change. In contrast to the predicates
// of [When], which look at records, f looks at whole objects:
//
//	controller.Owns[corev1.Pod](controller.Changed(func(before, after *corev1.Pod) bool {
//		return before == nil || before.Status.Phase != after.Status.Phase
//	}))
//
// S is the type of the source, or a projection of its kind. For the reconciled kind, Changed is given
// to [Reconciled]. f receives copies of its own. before is nil for an object that was added, and after is
// never nil: a deletion and the beginning of a deletion always matter. A change matters too if the
// object does not fit S, or if f panics. Several predicates must all return true.
//
// f is called concurrently, in the goroutines of the streams, so it must not block. Both objects are
// decoded for each change that the predicates of When accept. The objects of Secrets have metadata
// only, unless [KeepSecrets] is among the options.
func Changed[S any, P kube.ObjectOf[S]](f func(before, after *S) bool) KindOption {
	return kindOptionFunc(func(w *watchedKind) {
		w.objectPredicates = append(w.objectPredicates, objectPredicate{bind: func(w *watchedKind) (Predicate, error) {
			kind, err := typeOf(P(new(S)), w.namedResource)
			switch {
			case f == nil:
				return nil, errors.New(
					"the function of a controller.Changed is nil: leave it out, because all changes matter without one")
			case err != nil:
				return nil, fmt.Errorf("controller.Changed: %w", err)
			case kind.Resource != w.kind.Resource,
				kind.Representation != w.kind.Representation && w.kind.Representation != wire.Full:
				return nil, fmt.Errorf("a controller.Changed of %s is an option of a source of %s: give it a function of %s",
					ident.GoTypeName(kind.Go), w.kind.Resource, ident.GoTypeName(w.kind.Go))
			}
			api := kube.APIOf[S, P](kube.NewClientFromHandler(nil), kind, "")
			return func(c Change) bool { return acceptsObjects(*c.published, api, f) }, nil
		}})
	})
}

// objectPredicate is a predicate on whole objects.
type objectPredicate struct {
	// bind returns the predicate for the kind of w, or an error if the predicate is of another kind.
	bind func(w *watchedKind) (Predicate, error)
}

// acceptsObjects reports whether f accepts the objects of c.
func acceptsObjects[S any](c cache.Change, api kube.API[S], f func(before, after *S) bool) bool {
	if isDeletionStep(c) {
		return true
	}
	after, err := decodeObject(c.AfterObject(), api)
	if err != nil {
		return true
	}
	var before *S
	if c.Type == cache.Modified {
		if before, err = decodeObject(c.BeforeObject(), api); err != nil {
			return true
		}
	}
	return f(before, after)
}

func decodeObject[S any](o cache.Object, api kube.API[S]) (*S, error) {
	object, err := o.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.Key(), err)
	}
	return api.Decode(object)
}
