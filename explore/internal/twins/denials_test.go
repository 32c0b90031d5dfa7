package twins

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// The operators of this file are wrong when the server denies a write for longer than a client repeats it.

// updatePage reads the page, and replaces it where the data, a label or the owner differs. What others have added stays.
func updatePage(ctx context.Context, s *Site, c *kube.Client) error {
	desired := newLabelledPage(s)
	live, err := pagesOf(s, c).Get(ctx, desired.Name)
	if kube.IsNotFound(err) {
		_, err = pagesOf(s, c).Create(ctx, desired)
		return err
	}
	if err != nil {
		return err
	}
	page := kube.OwnedBy(s, live.DeepCopy())
	page.Data = desired.Data
	if page.Labels == nil {
		page.Labels = make(map[string]string)
	}
	maps.Copy(page.Labels, desired.Labels)
	if equality.Semantic.DeepEqual(live, page) {
		return nil
	}
	_, err = pagesOf(s, c).Replace(ctx, page)
	return err
}

// swallowConflict updates the page, and takes a conflict for success: somebody else has changed the page, and the event of
// that change is said to bring the next reconcile.
func swallowConflict(ctx context.Context, s *Site, c *kube.Client) error {
	err := updatePage(ctx, s, c)
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
