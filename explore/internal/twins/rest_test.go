package twins

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// defaulting returns a function that makes the parts of a program with two controllers. One makes the
// page of each Site, and the other one sets the language of each page.
func defaulting(reconcile reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		defaults := controller.New(func(ctx context.Context, page *corev1.ConfigMap, c *kube.Client) (controller.Action, error) {
			if page.Data["language"] == "en" {
				return controller.Done(), nil
			}
			_, err := kube.Namespaced[corev1.ConfigMap](c, page.Namespace).Modify(ctx, page.Name, func(page *corev1.ConfigMap) error {
				if page.Data == nil {
					page.Data = make(map[string]string)
				}
				page.Data["language"] = "en"
				return nil
			})
			return controller.Done(), kube.IgnoreNotFound(err)
		}, controller.Name("defaults"), controller.Reconciled(controller.Select(kube.LabelExists(siteLabel))), controller.Writes[corev1.ConfigMap](wire.VerbUpdate))
		return []operator.Part{newController(reconcile), defaults}
	}
}

// newLabelledPage returns the desired page of s with the label of pages.
func newLabelledPage(s *Site) *corev1.ConfigMap {
	page := newMainPage(s)
	page.Labels = map[string]string{siteLabel: s.Name}
	return page
}

// replacePage replaces the page where its data or its owner differs, and so removes the default each time.
func replacePage(ctx context.Context, s *Site, c *kube.Client) error {
	page := newLabelledPage(s)
	live, err := pagesOf(s, c).Get(ctx, page.Name)
	switch {
	case kube.IsNotFound(err):
		_, err = pagesOf(s, c).Create(ctx, page)
	case err == nil && (!maps.Equal(live.Data, page.Data) || !metav1.IsControlledBy(live, s)):
		page.ResourceVersion = live.ResourceVersion
		_, err = pagesOf(s, c).Replace(ctx, page)
	}
	return err
}

// applyFields applies what the Site says of the page, and leaves the default to its owner.
func applyFields(ctx context.Context, s *Site, c *kube.Client) error {
	_, err := kube.Apply(ctx, c, newLabelledPage(s))
	return err
}

// checking returns a maker of the parts of a program that looks at each Site at intervals.
func checking(check reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{controller.New(func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
			return controller.RequeueAfter(200 * time.Millisecond), check(ctx, s, c)
		}, controller.Owns[corev1.ConfigMap]())}
	}
}

// countChecks writes the status each time.
func countChecks(ctx context.Context, s *Site, c *kube.Client) error {
	s.Status.Checks++
	return applyAndRecord(ctx, s, c)
}

// applyOnCreate makes the page, and does not look at it again.
func applyOnCreate(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.Page != "" {
		return nil
	}
	return applyAndRecord(ctx, s, c)
}

// unwatched returns the parts of a program that does not watch the pages. A page that somebody changes
// stays so until the program starts again.
func unwatched() []operator.Part {
	return []operator.Part{controller.New(func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
		return controller.Done(), applyMainPage(ctx, s, c)
	}, controller.Reads[corev1.ConfigMap](wire.VerbGet), controller.Writes[corev1.ConfigMap](wire.VerbCreate, wire.VerbPatch))}
}
