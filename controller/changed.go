package controller

import (
	"errors"
	"fmt"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// Changed restricts the changes that matter to those for which f returns true. In contrast to the
// predicates of [When], which look at records, f looks at whole objects:
//
//	controller.Owns[corev1.Pod](controller.Changed(func(before, after *corev1.Pod) bool {
//		return before == nil || before.Status.Phase != after.Status.Phase
//	}))
//
// S is the type of the source, or a projection of its kind. For the reconciled kind, Changed is given
// to [For]. f receives copies of its own. before is nil for an object that was added, and after is never nil:
// a deletion and the beginning of a deletion always matter. A change of an object that does not fit S, and
// a change for which f panics, matter too. Several predicates must all return true.
//
// f is called concurrently, in the goroutines of the streams, so it must not block. Both objects are
// decoded for each change that the predicates of When accept. The objects of Secrets have metadata
// only, unless [KeepSecrets] is among the options.
func Changed[S any, P kube.ObjectOf[S]](f func(before, after *S) bool) SourceOption {
	return func(w *watchedKind) {
		w.objectPredicates = append(w.objectPredicates, objectPredicate{bind: func(w *watchedKind) (Predicate, error) {
			kind, err := typeOf(P(new(S)), w.named)
			switch {
			case f == nil:
				return nil, errors.New("the function of a controller.Changed is nil: leave it out, because all changes matter without one")
			case err != nil:
				return nil, fmt.Errorf("controller.Changed: %w", err)
			case kind.Resource != w.kind.Resource, kind.Representation != w.kind.Representation && w.kind.Representation != kube.Full:
				return nil, fmt.Errorf("a controller.Changed of %s is an option of a source of %s: give it a function of %s",
					kube.TypeName(kind.Go), w.kind.Resource, kube.TypeName(w.kind.Go))
			}
			api := kube.APIOf[S, P](kube.NewClientFromHandler(nil), kind, "")
			return func(c Change) bool { return acceptsObjects(c, api, f) }, nil
		}})
	}
}

// objectPredicate is a predicate on whole objects.
type objectPredicate struct {
	// bind returns the predicate for the kind of w, or an error if the predicate is of another kind.
	bind func(w *watchedKind) (Predicate, error)
}

// acceptsObjects reports whether f accepts the objects of c.
func acceptsObjects[S any](c Change, api kube.API[S], f func(before, after *S) bool) bool {
	if endsLife(c) {
		return true
	}
	after, err := decodeObject(c.AfterObject(), api)
	if err != nil {
		return true
	}
	var before *S
	if c.Type == Modified {
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
