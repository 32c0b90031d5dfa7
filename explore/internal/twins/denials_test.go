package twins

import (
	"context"
	"sync"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// The operators of this file are wrong when the server denies a write for longer than a client repeats it.

// swallowConflict replaces the page, and takes a conflict for success: somebody else has changed the page, and the event of
// that change is said to bring the next reconcile.
func swallowConflict(ctx context.Context, s *Site, c *kube.Client) error {
	err := replacePage(ctx, s, c)
	if kube.IsConflict(err) {
		return nil
	}
	return err
}

// swallowRefusal applies the page, and does not try again if that is forbidden.
func swallowRefusal(ctx context.Context, s *Site, c *kube.Client) error {
	err := applyMainPage(ctx, s, c)
	if kube.IsForbidden(err) {
		return nil
	}
	return err
}

// remembering returns a function that makes the parts of a program that never tries again what was invalid.
func remembering() func() []operator.Part {
	return func() []operator.Part {
		var invalid sync.Map // the names of Sites
		return []operator.Part{newController(func(ctx context.Context, s *Site, c *kube.Client) error {
			if _, isInvalid := invalid.Load(s.Namespace + "/" + s.Name); isInvalid {
				return nil
			}
			err := applyMainPage(ctx, s, c)
			if kube.IsInvalid(err) {
				invalid.Store(s.Namespace+"/"+s.Name, true)
				return nil
			}
			return err
		})}
	}
}
