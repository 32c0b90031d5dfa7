package kube

import (
	"fmt"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// OwnerIs selects objects with an owner reference to owner, which must have a uid. The selector
// works only in lists, because servers do not know it.
func OwnerIs(owner Object) Selector {
	if uid := owner.GetUID(); uid != "" {
		return Selector{match: &wire.Match{Owner: uid}}
	}
	return Selector{err: fmt.Errorf("the owner %s has no uid: read it before what it owns is selected", ident.Quoted(owner.GetNamespace(), owner.GetName()))}
}

// matchesOf returns the conditions among selectors of a list of t.
func matchesOf(selectors []Selector, t target) ([]wire.Match, error) {
	var all []wire.Match
	for _, s := range selectors {
		if s.match == nil {
			continue
		}
		if x := s.match.Index; x != nil {
			if err := x.Check(t.resource, t.representation); err != nil {
				return nil, fmt.Errorf("list %s: %w", t.resource, err)
			}
		}
		all = append(all, *s.match)
	}
	return all, nil
}
