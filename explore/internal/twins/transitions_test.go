package twins

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
)

// createOr returns a function that creates the page of a Site. If the page exists, the function changes it.
func createOr(desired func(*Site) *corev1.ConfigMap, change func(page *corev1.ConfigMap, s *Site)) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		_, err := pagesOf(s, c).Get(ctx, pageName(s))
		switch {
		case kube.IsNotFound(err):
			_, err = pagesOf(s, c).Create(ctx, desired(s))
		case err == nil:
			_, err = pagesOf(s, c).Modify(ctx, pageName(s), func(page *corev1.ConfigMap) error {
				change(page, s)
				kube.OwnedBy(s, page)
				return nil
			})
		}
		return err
	}
}

// setText forgets the notes.
func setText(page *corev1.ConfigMap, s *Site) { page.Data = map[string]string{"text": s.Spec.Text} }

// mergeNotes adds the notes of a Site to the notes of its page. A note that the user removes stays.
func mergeNotes(page *corev1.ConfigMap, s *Site) {
	setText(page, s)
	if page.Annotations == nil {
		page.Annotations = make(map[string]string)
	}
	maps.Copy(page.Annotations, s.Spec.Notes)
}

// applyLabelled applies a page whose label is the name of the page. The name need not be a valid label.
func applyLabelled(ctx context.Context, s *Site, c *kube.Client) error {
	page := newPage(s, s.Name)
	page.Labels = map[string]string{siteLabel: s.Spec.Page}
	_, err := kube.Apply(ctx, c, page)
	return err
}

// giveUp does nothing any more after the server has refused a page.
func giveUp(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.Problem != "" {
		return nil
	}
	return reportProblem(ctx, s, c)
}

// reportProblem applies the page. If the server refuses the page, the Site has none, and the status says why.
func reportProblem(ctx context.Context, s *Site, c *kube.Client) error {
	err := applyLabelled(ctx, s, c)
	if err != nil && !kube.IsInvalid(err) {
		return err
	}
	s.Status.Problem = ""
	if err != nil {
		s.Status.Problem = "the page's label is not valid"
		if err := deleteOtherPages(ctx, s, c); err != nil {
			return err
		}
	}
	return c.ApplyStatus(ctx, s)
}
