package controller

import (
	"fmt"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// source is a kind whose changes trigger reconciles.
type source struct {
	kind       kube.Type
	streams    func(*kube.Client) ([]kube.Stream, error)
	selectors  []kube.Selector
	predicates []Predicate
	// indexes and labelIndexes are kept of what the source holds.
	indexes      []*kube.Index
	labelIndexes []string
	metadataOnly bool
	keepSecrets  bool

	// At most one of these says which objects a change concerns: the owner references if
	// owned is set, names, which is the author's function, or references, an index of the
	// reconciled kind. Without any of them it is the reconciled kind itself.
	owned      bool
	names      func(*kube.Client, []byte) ([]kube.Ref, error)
	references *kube.Index
	// referring finds the objects of the reconciled kind that have a value in references, in
	// one namespace, or in all of them if it is empty. It is there once the controller runs.
	referring func(namespace, value string) []kube.Ref
}

// isSelf tells the reconciled kind from other sources.
func (s *source) isSelf() bool { return !s.owned && s.names == nil && s.references == nil }

// passes asks the predicates. What they say of a panic is yes: a change too many does no
// harm.
func (s *source) passes(c Change) (pass bool, err error) {
	what := "a predicate"
	pass = true
	err = guard(&what, func() error {
		for _, predicate := range s.predicates {
			if !predicate(c) {
				pass = false
				break
			}
		}
		return nil
	})
	return pass || err != nil, err
}

// keys are the objects that a change of the source's object r concerns.
func (s *source) keys(c *kube.Client, self kube.Resource, r cache.Record, object func() ([]byte, error)) (keys []owned, err error) {
	switch {
	case s.owned:
		for _, owner := range r.Owners {
			if owner.Controller && owner.Group == self.Group && owner.Kind == self.Kind {
				k := owned{uid: string(owner.UID)}
				k.Name = owner.Name
				if !self.ClusterScoped {
					k.Namespace = r.Namespace
				}
				keys = append(keys, k)
			}
		}
		return keys, nil
	case s.references != nil:
		for _, ref := range s.referrers(self, r) {
			keys = append(keys, owned{Key: queue.Key{Namespace: ref.Namespace, Name: ref.Name}})
		}
		return keys, nil
	case s.names != nil:
		body, err := object()
		if err != nil {
			return nil, err
		}
		refs, err := s.call(c, body)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			k := owned{}
			k.Name = ref.Name
			switch {
			case ref.Name == "":
				continue // a label that is not there
			case self.ClusterScoped:
			case ref.Namespace == "":
				err = fmt.Errorf("the function from %s to names names %q without a namespace: %s live in namespaces", s.kind.Resource, ref.Name, self)
				continue
			default:
				k.Namespace = ref.Namespace
			}
			keys = append(keys, k)
		}
		return keys, err
	default:
		return []owned{{Key: queue.Key{Namespace: r.Namespace, Name: r.Name}}}, nil
	}
}

// referrers are the objects that refer to r: by its name alone, which means their own
// namespace, or by its namespace and name.
func (s *source) referrers(self kube.Resource, r cache.Record) []kube.Ref {
	switch {
	case r.Namespace == "":
		return s.referring("", r.Name)
	case self.ClusterScoped:
		return s.referring("", r.Namespace+"/"+r.Name)
	default:
		return append(s.referring(r.Namespace, r.Name), s.referring("", r.Namespace+"/"+r.Name)...)
	}
}

// owned is an object to reconcile, and its uid if it was found as an owner.
type owned struct {
	queue.Key
	uid string
}

func (s *source) call(c *kube.Client, object []byte) (refs []kube.Ref, err error) {
	what := "the map function"
	err = guard(&what, func() (err error) {
		refs, err = s.names(c, object)
		return err
	})
	return refs, err
}
