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
	// owned finds the object to reconcile by owner reference, names by the author's
	// function; neither is the reconciled kind itself.
	owned        bool
	names        func(*kube.Client, []byte) ([]kube.Ref, error)
	metadataOnly bool
}

// passes asks the predicates. What they say of a panic is yes: a change too many does no
// harm.
func (s *source) passes(c Change) (pass bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			pass, err = true, panicked("a predicate of "+s.kind.Resource.String(), p)
		}
	}()
	for _, predicate := range s.predicates {
		if !predicate(c) {
			return false, nil
		}
	}
	return true, nil
}

// keys are the objects that a change of the source's object r concerns.
func (s *source) keys(c *kube.Client, self kube.Resource, r cache.Record, object func() ([]byte, error)) (keys []owned, err error) {
	switch {
	case s.owned:
		for _, owner := range r.Owners {
			if owner.Controller && owner.Group == self.Group && owner.Kind == self.Kind {
				k := owned{uid: string(owner.UID)}
				k.Name = owner.Name
				if !self.Cluster {
					k.Namespace = r.Namespace
				}
				keys = append(keys, k)
			}
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
			case self.Cluster:
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

// owned is an object to reconcile, and its uid if it was found as an owner.
type owned struct {
	queue.Key
	uid string
}

func (s *source) call(c *kube.Client, object []byte) (refs []kube.Ref, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("the function from "+s.kind.Resource.String()+" to names", p)
		}
	}()
	return s.names(c, object)
}
