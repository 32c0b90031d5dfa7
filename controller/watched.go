package controller

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
)

// watchedKind is a kind whose changes trigger reconciles.
type watchedKind struct {
	kind kube.Type
	// relation returns the objects that a change concerns.
	relation   relation
	streams    func(*kube.Client) ([]kube.Stream, error)
	selectors  []kube.Selector
	predicates []Predicate
	// indexes and labelIndexes are those that the stores of the streams keep.
	indexes      []*kube.Index
	labelIndexes []string
	metadataOnly bool
	keepSecrets  bool
}

// newWatchedKind returns the kind of S, all of whose objects are watched.
func newWatchedKind[S any, P kube.ObjectOf[S]](r relation) (*watchedKind, error) {
	kind, err := kube.TypeOf[S, P]()
	w := &watchedKind{kind: kind, relation: r}
	w.streams = func(c *kube.Client) ([]kube.Stream, error) { return kube.All[S, P](c).Streams(w.selectors...) }
	return w, err
}

// newWatchOption returns the option that adds w to a controller. err is why w is not valid, or nil.
func newWatchOption(w *watchedKind, err error, options []SourceOption) Option {
	err = errors.Join(err, w.narrow(options))
	if err == nil {
		_, err = w.streams(kube.NewClientFromHandler(nil)) // validates the selectors
	}
	return func(settings *settings) {
		settings.reject(err)
		settings.watched = append(settings.watched, w)
	}
}

// SourceOption narrows what is watched.
type SourceOption func(*watchedKind)

// narrow applies options to w.
func (w *watchedKind) narrow(options []SourceOption) error {
	for _, option := range options {
		if option == nil {
			return errors.New("a source option is nil: leave it out")
		}
		option(w)
	}
	for _, x := range w.indexes {
		if err := x.Check(w.kind.Resource, w.kind.Representation); err != nil {
			return err
		}
		if w.metadataOnly {
			return fmt.Errorf("the index %q looks at whole objects, and only the metadata of %s is watched", x, w.kind.Resource)
		}
	}
	if slices.ContainsFunc(w.predicates, func(p Predicate) bool { return p == nil }) {
		return errors.New("a predicate is nil: leave it out, because all changes matter without one")
	}
	return nil
}

// accepts reports whether all predicates accept c. A panic in one of them accepts c and is
// returned as an error: an unneeded reconcile does no harm.
func (w *watchedKind) accepts(c Change) (accepted bool, err error) {
	what := "a predicate"
	accepted = true
	err = guard(&what, func() error {
		accepted = !slices.ContainsFunc(w.predicates, func(p Predicate) bool { return !p(c) })
		return nil
	})
	return accepted, err
}
