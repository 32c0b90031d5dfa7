package twins

import (
	"context"
	"encoding/json"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// The client of yare never asks for the past. The operators of this file send requests of their own,
// with the resource version 0, as informers of client-go do when they start.

// readPast returns s as some API server had it at any time, or s itself if s did not exist then.
func readPast(ctx context.Context, s *Site, c *kube.Client) (*Site, error) {
	sites := kube.Namespaced[Site](c, s.Namespace)
	response, err := c.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: sites.Resource(), Namespace: s.Namespace, Name: s.Name,
		Query: url.Values{"resourceVersion": {"0"}},
	})
	if kube.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return sites.Decode(response.Body)
}

// sweeping returns a maker of the parts of a program. When the program starts, the program deletes the
// pages of Sites that do not exist.
func sweeping(isSite func(ctx context.Context, c *kube.Client) func(page *corev1.ConfigMap) (bool, error)) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{
			newController(func(ctx context.Context, s *Site, c *kube.Client) error {
				if err := applyFields(ctx, s, c); err != nil {
					return err
				}
				s.Status.Page = pageName(s)
				return c.ApplyStatus(ctx, s)
			}),
			operator.Task("sweep", func(ctx context.Context, rt *controller.Runtime) error {
				pages, err := kube.Everywhere[corev1.ConfigMap](rt.Client).List(ctx, kube.LabelExists(siteLabel))
				if err != nil {
					return ignoreEnd(ctx, err)
				}
				hasSite := isSite(ctx, rt.Client)
				for _, page := range pages {
					exists, err := hasSite(page)
					if err == nil && !exists {
						err = rt.Client.Delete(ctx, page, kube.RequireUID(page.UID))
					}
					if kube.IgnoreNotFound(err) != nil {
						return ignoreEnd(ctx, err)
					}
				}
				return nil
			}, controller.Reads[Site](), controller.Reads[corev1.ConfigMap](), controller.Writes[corev1.ConfigMap](wire.VerbDelete)),
		}
	}
}

// ignoreEnd returns err, or nil if the program is ending.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// isInPastList returns a function that reports whether the Site of a page is in a list from the past.
func isInPastList(ctx context.Context, c *kube.Client) func(*corev1.ConfigMap) (bool, error) {
	sites, err := listPast(ctx, c)
	return func(page *corev1.ConfigMap) (bool, error) {
		return sites[kube.Key{Namespace: page.Namespace, Name: page.Labels[siteLabel]}], err
	}
}

// listPast returns the keys of the Sites that some API server had at any time.
func listPast(ctx context.Context, c *kube.Client) (map[kube.Key]bool, error) {
	streams, err := kube.Everywhere[Site](c).Streams()
	if err != nil {
		return nil, err
	}
	sites := make(map[kube.Key]bool)
	for _, stream := range streams {
		response, err := c.Do(ctx, stream.Request(wire.VerbList, "resourceVersion", "0"))
		if err != nil {
			return nil, err
		}
		var list struct {
			Items []struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
			} `json:"items"`
		}
		if err := json.Unmarshal(response.Body, &list); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			sites[kube.Key{Namespace: item.Metadata.Namespace, Name: item.Metadata.Name}] = true
		}
	}
	return sites, nil
}

// isOnServer returns a function that asks the server for the Site of a page.
func isOnServer(ctx context.Context, c *kube.Client) func(*corev1.ConfigMap) (bool, error) {
	return func(page *corev1.ConfigMap) (bool, error) {
		_, err := kube.Namespaced[Site](c.Live(), page.Namespace).Get(ctx, page.Labels[siteLabel])
		return err == nil, kube.IgnoreNotFound(err)
	}
}

// deleteByPastDeletion deletes the page of a Site that is being deleted, by its name. A Site of the past
// may have had that name.
func deleteByPastDeletion(ctx context.Context, s *Site, c *kube.Client) error {
	seen, err := readPast(ctx, s, c)
	if err != nil {
		return err
	}
	if seen.DeletionTimestamp != nil {
		return deletePageIfExists(ctx, s, c)
	}
	return applyMainPage(ctx, s, c)
}

// deleteByOwner deletes the pages of the Site that is being deleted, and of no other Site of its name.
func deleteByOwner(ctx context.Context, s *Site, c *kube.Client) error {
	seen, err := readPast(ctx, s, c)
	if err != nil {
		return err
	}
	if seen.DeletionTimestamp != nil {
		if err := deleteOtherPages(ctx, seen, c); err != nil || seen.UID == s.UID {
			return err
		}
	}
	return applyMainPage(ctx, s, c)
}

// scaleByPast makes the Site have as many volumes as it had at some time.
func scaleByPast(ctx context.Context, s *Site, c *kube.Client) error {
	seen, err := readPast(ctx, s, c)
	if err != nil {
		return err
	}
	return scaleAndRecord(ctx, s, c, seen.Spec.Size)
}

// scaleByPresent makes the Site have as many volumes as it should.
func scaleByPresent(ctx context.Context, s *Site, c *kube.Client) error {
	return scaleAndRecord(ctx, s, c, s.Spec.Size)
}

// scaleAndRecord makes s have the first volumes and no others, and records their number.
func scaleAndRecord(ctx context.Context, s *Site, c *kube.Client, count int32) error {
	if err := scale(ctx, s, c, int(count)); err != nil {
		return err
	}
	s.Status.Size = count
	return c.ApplyStatus(ctx, s)
}

// resizing returns a function that replaces the workload of a Site where its size must change.
func resizing(mustReplace func(size, desired int32) bool) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		seen, err := readPast(ctx, s, c)
		if err != nil {
			return err
		}
		desired := seen.Spec.Size
		workload, err := pagesOf(s, c).Get(ctx, s.Name)
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			if mustReplace(sizeOf(workload), desired) {
				if err := deletePage(ctx, s, c, Page{Name: workload.Name, UID: workload.UID}); err != nil {
					return err
				}
			} else {
				desired = sizeOf(workload)
			}
		}
		if _, err := kube.Apply(ctx, c, newSizedPage(s, s.Name, desired)); err != nil {
			return err
		}
		s.Status.Size = desired
		return c.ApplyStatus(ctx, s)
	}
}

// differs reports whether a size is not the desired size. A size of the past differs too.
func differs(size, desired int32) bool { return size != desired }

// isSmaller reports whether a size is smaller than the desired size. Sizes only grow.
func isSmaller(size, desired int32) bool { return size < desired }
