package controller

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// Watches runs the reconcile of the objects whose keys the map function keys returns when an S
// changes. The controller calls keys with the S as it is after the change, and as it was before, so
// that an object that an S no longer refers to is reconciled too. The S is the function's own copy.
//
//	// A Policy concerns the WebApps that its label selects.
//	controller.Watches(func(ctx context.Context, p *Policy, c *kube.Client) ([]kube.Key, error) {
//		apps, err := kube.Namespaced[WebApp](c, p.Namespace).List(ctx, kube.Label("tier", p.Spec.Tier))
//		return kube.KeysOf(apps...), err
//	})
//
// The client reads what the sources of the controller show, from the cache. It refuses writes, and
// reads that no source covers, with an error. The controller calls keys only once all of its
// sources are synced. If keys returns an error or panics, the controller logs that, triggers the
// objects whose keys came with the error, and calls keys again with growing intervals.
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
func Watches[S any, P kube.ObjectOf[S]](keys func(ctx context.Context, s *S, c *kube.Client) ([]kube.Key, error), options ...SourceOption) Option {
	return newWatchOption(P(new(S)), options, func(w *watchedKind) (relation, error) {
		m := mapRelation{watched: w.kind.Resource}
		if keys == nil {
			return m, fmt.Errorf("the map function of %s is nil: give one that returns the keys of the objects that a change concerns", m.watched)
		}
		m.keys = func(ctx context.Context, c *kube.Client, object []byte) ([]kube.Key, error) {
			s, err := kube.APIOf[S, P](c, w.kind, "").Decode(object)
			if err != nil {
				return nil, &lastingError{err}
			}
			return keys(ctx, s, c)
		}
		return m, nil
	})
}

// mapRelation connects objects by a map function.
type mapRelation struct {
	watched kube.Resource
	// keys decodes an object and calls the author's function.
	keys func(ctx context.Context, c *kube.Client, object []byte) ([]kube.Key, error)
}

func (mapRelation) check(_, _ kube.Resource) error { return nil }

func (mapRelation) index() *kube.Index { return nil }

func (mapRelation) writes() []kube.Verb { return nil }

func (mapRelation) isSlow() bool { return true }

func (m mapRelation) relatedKeys(ctx context.Context, o watchedObject, to reconciledKind) (keys []relatedKey, err error) {
	object, err := o.content()
	if err != nil {
		return nil, err
	}
	returned, err := m.call(ctx, to.client, object)
	for _, k := range returned {
		switch {
		case k.Name == "": // such as the value of a label that the object does not have
			continue
		case to.resource.ClusterScoped:
			k.Namespace = ""
		case k.Namespace == "":
			if err == nil {
				err = &lastingError{fmt.Errorf("the map function of %s returned a key without a namespace: %q, although %s live in namespaces", m.watched, k.Name, to.resource)}
			}
			continue
		}
		keys = append(keys, relatedKey{Key: k})
	}
	return keys, err
}

// call calls the map function, and returns a panic as an error.
func (m mapRelation) call(ctx context.Context, c *kube.Client, object []byte) (keys []kube.Key, err error) {
	what := "the map function"
	err = guard(&what, func() (err error) {
		keys, err = m.keys(ctx, c, object)
		return err
	})
	return keys, err
}
