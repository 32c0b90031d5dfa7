package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/yare-go/yare/controller/internal/owned"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// watchedKind is a kind whose changes trigger reconciles.
type watchedKind struct {
	kind kube.Type
	// namedResource is the resource that the author has named by [Kind], or nil.
	namedResource *wire.Resource
	// relation finds the objects that a change concerns.
	relation   relation.Relation
	selectors  []kube.Selector
	predicates []Predicate
	// objectPredicates holds the predicates of [Changed]. predicates contains them once the kind is bound.
	objectPredicates []objectPredicate
	// indexes and labelIndexes are the indexes that the stores of the streams keep.
	indexes      []*kube.Index
	labelIndexes []string
	keepSecrets  bool
	// isNarrowed is true if the kind is watched in namespaces, and in the program's own namespace if
	// isInOwnNamespace is true, and nowhere else.
	isNarrowed, isInOwnNamespace bool
	namespaces                   []string
	// isAnyOwner is true with [AnyOwner].
	isAnyOwner bool
	// ownWriteVerbs holds the verbs of the option [WriteVerbs]. hasWriteVerbs is true with this option: its list may be
	// empty.
	ownWriteVerbs []wire.Verb
	hasWriteVerbs bool
	ifServed      bool
	// skipsOwnStatus is true with [SkipOwnStatus].
	skipsOwnStatus bool
}

// KindOption configures how a kind is watched: see [Owns], [Watches] and [Reconciled].
type KindOption interface{ changeKind(w *watchedKind) }

type kindOptionFunc func(*watchedKind)

func (f kindOptionFunc) changeKind(w *watchedKind) { f(w) }

// newWatchOption returns the option that watches the kind of zero. connect returns the relation between that kind and
// the reconciled kind.
func newWatchOption(
	zero kube.Object, options []KindOption, connect func(*watchedKind) (relation.Relation, error),
) Option {
	w := new(watchedKind)
	err := w.apply(options)
	err = errors.Join(err, w.bind(zero))
	var relationErr error
	w.relation, relationErr = connect(w)
	err = errors.Join(err, relationErr)
	if _, ok := w.relation.(relation.Owner); w.isAnyOwner && !ok {
		err = errors.Join(err, errAnyOwnerWithoutOwns)
	}
	if w.hasWriteVerbs && w.relation.WriteVerbs() == nil {
		err = errors.Join(err, errWriteVerbsWithoutChildren)
	}
	if w.skipsOwnStatus {
		err = errors.Join(err,
			errors.New("controller.SkipOwnStatus is about the reconciled kind: give it to controller.Reconciled"))
	}
	return optionFunc(func(settings *settings) {
		settings.reject(err)
		settings.watched = append(settings.watched, w)
	})
}

// apply applies options to w.
func (w *watchedKind) apply(options []KindOption) error {
	for _, option := range options {
		if option == nil {
			return errors.New("an option of a watched kind is nil: leave it out")
		}
		option.changeKind(w)
	}
	return nil
}

// bind sets the kind of w to the kind of zero, and binds the predicates to the kind. The options have been applied
// before. bind is called once. It returns an error if the options do not fit the kind.
func (w *watchedKind) bind(zero kube.Object) error {
	kind, err := typeOf(zero, w.namedResource)
	w.kind = kind
	if err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	return w.bindPredicates()
}

// streams returns the streams of the objects that match the selectors.
func (w *watchedKind) streams(c *kube.Client) ([]wire.Stream, error) {
	return w.kind.Streams(c, w.selectors...)
}

// typeOf returns the type of an object. named is the kind that the object stands for, or nil.
func typeOf(obj kube.Object, named *wire.Resource) (kube.Type, error) {
	t := reflect.TypeOf(obj).Elem()
	isAnyKind := ident.StandsForAnyKind(t)
	switch {
	case named == nil && isAnyKind:
		return kube.Type{}, fmt.Errorf("%s stands for any kind: name the kind by the option controller.Kind, which for the reconciled kind is given to controller.Reconciled",
			ident.GoTypeName(t))
	case named == nil:
		return kube.TypeOfObject(obj)
	case !isAnyKind:
		return kube.Type{}, fmt.Errorf("controller.Kind names %s, and the Go type %s has a kind of its own: leave controller.Kind out, or use unstructured.Unstructured",
			named, ident.GoTypeName(t))
	default:
		return kube.TypeOfKind(obj, *named)
	}
}

// check returns an error if the options do not fit the kind, or one another.
func (w *watchedKind) check() error {
	for _, x := range w.indexes {
		if err := x.Check(w.kind.Resource, w.kind.Representation); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(w.predicates, func(p Predicate) bool { return p == nil }) {
		return errors.New("a predicate is nil: leave it out, because all changes matter without one")
	}
	if err := checkWriteVerbs(w.ownWriteVerbs); err != nil {
		return fmt.Errorf("controller.WriteVerbs: %w", err)
	}
	if w.isNarrowed && w.kind.Resource.ClusterScoped {
		return fmt.Errorf("%s live outside of namespaces: leave controller.InNamespaces and controller.InOwnNamespace out",
			w.kind.Resource)
	}
	// Mistakes in selectors and namespaces show without any request.
	c, err := w.client(&Runtime{Client: kube.NewClientFromHandler(nil), Namespace: "default"})
	if err == nil {
		_, err = w.streams(c)
	}
	return err
}

// bindPredicates binds the predicates of [Changed] to the kind, and adds them to the predicates. They come after the
// predicates on records, which cost less. bindPredicates returns an error if a predicate does not fit the kind.
func (w *watchedKind) bindPredicates() error {
	for _, p := range w.objectPredicates {
		bound, err := p.bind(w)
		if err != nil {
			return err
		}
		w.predicates = append(w.predicates, bound)
	}
	return nil
}

// access returns the permissions to use verbs on the kind, or on a subresource, where it is watched.
func (w *watchedKind) access(subresource string, verbs []wire.Verb) []kube.Access {
	return accessIn(kube.Access{Resource: w.kind.Resource, Subresource: subresource, Verbs: verbs},
		w.namespaces, w.isInOwnNamespace)
}

// writeVerbs returns the verbs with which the program writes the objects of a source.
func (w *watchedKind) writeVerbs() []wire.Verb {
	if w.hasWriteVerbs {
		return w.ownWriteVerbs
	}
	return w.relation.WriteVerbs()
}

// client returns the client of a program, narrowed to the namespaces in which the kind is watched.
func (w *watchedKind) client(rt *Runtime) (*kube.Client, error) {
	if !w.isNarrowed {
		return rt.Client, nil
	}
	namespaces := slices.Clone(w.namespaces)
	if w.isInOwnNamespace {
		if rt.Namespace == "" {
			return nil, fmt.Errorf("%s are to be watched in the namespace of the program, which is not known: set the environment variable POD_NAMESPACE, or Namespace of controller.Runtime",
				w.kind.Resource)
		}
		namespaces = append(namespaces, rt.Namespace)
	}
	return rt.Client.InNamespaces(namespaces...), nil
}

// accepts reports whether all predicates accept a change. A panic in one of them accepts the change and is
// returned as an error: an unneeded reconcile does no harm.
func (w *watchedKind) accepts(change cache.Change) (accepted bool, err error) {
	if len(w.predicates) == 0 {
		return true, nil
	}
	published := change // only a change with predicates goes to the heap
	c := newChange(&published)
	what := "a predicate"
	accepted = true
	err = recoverPanic(&what, func() error {
		accepted = !slices.ContainsFunc(w.predicates, func(p Predicate) bool { return !p(c) })
		return nil
	})
	return accepted, err
}

// ownerLabels returns the labels of [OwnsByLabel].
func ownerLabels(watched []*watchedKind) (labels []string) {
	for _, w := range watched {
		if r, ok := w.relation.(relation.Label); ok {
			labels = append(labels, r.Name)
		}
	}
	return labels
}

// newOwned returns what package controller/children needs to know of a controller that watches these kinds.
func newOwned(watched []*watchedKind, rt *Runtime) (*owned.Controller, error) {
	c := &owned.Controller{Events: rt.Events}
	for _, w := range watched {
		if _, isOwned := w.relation.(relation.Owner); !isOwned {
			continue
		}
		client, err := w.client(rt)
		if err != nil {
			return nil, err
		}
		kind := owned.Kind{Resource: w.kind.Resource, IsPartial: len(w.selectors) > 0}
		if w.isNarrowed {
			kind.Namespaces = client.Namespaces()
		}
		c.Kinds = append(c.Kinds, kind)
	}
	return c, nil
}
