package twins

import (
	"context"
	"crypto/rand"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// createBeforeRecording creates a page with a name of the server's choice, and records the name
// afterwards. A program that ends in between creates a second page.
func createBeforeRecording(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.Page != "" {
		return applyPage(ctx, s, c, s.Status.Page)
	}
	page := newPage(s, "")
	page.GenerateName = s.Name + "-"
	created, err := pagesOf(s, c).Create(ctx, page)
	if err != nil {
		return err
	}
	s.Status.Page = created.Name
	return c.ApplyStatus(ctx, s)
}

// applyAndRecord applies a page whose name follows from the Site.
func applyAndRecord(ctx context.Context, s *Site, c *kube.Client) error {
	s.Status.Page = pageName(s)
	if err := applyPage(ctx, s, c, s.Status.Page); err != nil {
		return err
	}
	return c.ApplyStatus(ctx, s)
}

// createOnce takes "already exists" for a failure. If the program ends before it records the page,
// each later reconcile fails.
func createOnce(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Status.Page != "" {
		return applyPage(ctx, s, c, s.Status.Page)
	}
	created, err := pagesOf(s, c).Create(ctx, newPage(s, pageName(s)))
	if err != nil {
		return err
	}
	s.Status.Page = created.Name
	return c.ApplyStatus(ctx, s)
}

// cleaningUp returns a function that makes the parts of a program with a cleanup.
func cleaningUp(reconcile reconcileFunc, cleanup reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		return []operator.Part{newController(reconcile).Finalizer(finalizer,
			func(ctx context.Context, s *Site, c *kube.Client) (controller.Cleanup, error) {
				return controller.CleanupDone(), cleanup(ctx, s, c)
			})}
	}
}

// deletePageThatExists fails if the page is gone. If the program ends after the deletion, the
// finalizer stays forever.
func deletePageThatExists(ctx context.Context, s *Site, c *kube.Client) error {
	return pagesOf(s, c).Delete(ctx, pageName(s))
}

// deletePageIfExists deletes the page, which may be gone.
func deletePageIfExists(ctx context.Context, s *Site, c *kube.Client) error {
	return kube.IgnoreNotFound(deletePageThatExists(ctx, s, c))
}

// rememberPage returns the parts of a program that keeps the names of the pages in memory. If the
// program ends after it has made a page under a new name, it leaves the former page behind.
func rememberPage() []operator.Part {
	var names sync.Map // from types.UID to string
	return parts(func(ctx context.Context, s *Site, c *kube.Client) error {
		if err := applyMainPage(ctx, s, c); err != nil {
			return err
		}
		former, known := names.Load(s.UID)
		if known && former != pageName(s) {
			if err := kube.IgnoreNotFound(pagesOf(s, c).Delete(ctx, former.(string))); err != nil {
				return err
			}
		}
		names.Store(s.UID, pageName(s))
		return nil
	})()
}

// applyOnlyPage applies the page, and deletes all other pages of the Site.
func applyOnlyPage(ctx context.Context, s *Site, c *kube.Client) error {
	if err := applyMainPage(ctx, s, c); err != nil {
		return err
	}
	return deleteOtherPages(ctx, s, c, pageName(s))
}

// owningSecret returns the controller of a program that has a page and a Secret for each Site.
func owningSecret(password func(ctx context.Context, s *Site, c *kube.Client) ([]byte, error)) operator.Part {
	return newController(func(ctx context.Context, s *Site, c *kube.Client) error {
		if err := applyMainPage(ctx, s, c); err != nil {
			return err
		}
		secret := kube.OwnedBy(s, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}})
		value, err := password(ctx, s, c)
		if err != nil {
			return err
		}
		secret.Data = map[string][]byte{"password": value}
		_, err = kube.Apply(ctx, c, secret)
		return err
	}, controller.Owns[corev1.Secret]())
}

// makePasswordAtStart returns the parts of a program that has other passwords after each start.
func makePasswordAtStart() []operator.Part {
	password := []byte(rand.Text())
	return []operator.Part{owningSecret(func(context.Context, *Site, *kube.Client) ([]byte, error) { return password, nil })}
}

// keepPassword returns the parts of a program that makes a password only where there is none.
func keepPassword() []operator.Part {
	return []operator.Part{owningSecret(func(ctx context.Context, s *Site, c *kube.Client) ([]byte, error) {
		secret, err := kube.Get[corev1.Secret](ctx, c, s.Namespace, s.Name)
		if err != nil && !kube.IsNotFound(err) {
			return nil, err
		}
		if err == nil && len(secret.Data["password"]) > 0 {
			return secret.Data["password"], nil
		}
		return []byte(rand.Text()), nil
	})}
}

// retiring returns a function that records the former page of a Site before the function deletes the page.
func retiring(remove func(ctx context.Context, s *Site, c *kube.Client, page Page) error) reconcileFunc {
	return func(ctx context.Context, s *Site, c *kube.Client) error {
		if name := s.Status.Page; name != "" && name != pageName(s) {
			former, err := pagesOf(s, c).Get(ctx, name)
			if kube.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				s.Status.Former = append(s.Status.Former, Page{Name: name, UID: former.UID})
			}
		}
		s.Status.Page = pageName(s)
		if err := c.ApplyStatus(ctx, s); err != nil {
			return err
		}
		if err := applyMainPage(ctx, s, c); err != nil {
			return err
		}
		for _, page := range s.Status.Former {
			if err := remove(ctx, s, c, page); err != nil {
				return err
			}
		}
		s.Status.Former = nil
		return c.ApplyStatus(ctx, s)
	}
}

// deletePageByName deletes whatever page has the name. If the program ends after the deletion, and
// the user goes back to the former name, it deletes the new page.
func deletePageByName(ctx context.Context, s *Site, c *kube.Client, page Page) error {
	return kube.IgnoreNotFound(pagesOf(s, c).Delete(ctx, page.Name))
}

// siteLabel is the label of the pages that have no owner reference.
const siteLabel = "twins.example.com/site"

// actOnDeletion returns the parts of a program that deletes the page of a Site when the program sees
// the Site's deletion. While the program is down, it sees nothing.
func actOnDeletion() []operator.Part {
	gone := make(chan kube.Key, 16)
	return []operator.Part{
		controller.New(func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
			page := newPage(s, pageName(s))
			page.OwnerReferences = nil
			_, err := kube.Apply(ctx, c, kube.OwnedByLabel(s, siteLabel, page))
			return controller.Done(), err
		}, controller.OwnsByLabel[corev1.ConfigMap](siteLabel), controller.OnGone(func(key kube.Key) { gone <- key })),
		operator.Task("delete pages", func(ctx context.Context, rt *controller.Runtime) error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case key := <-gone:
					err := kube.Namespaced[corev1.ConfigMap](rt.Client, key.Namespace).Delete(ctx, key.Name+"-main")
					if kube.IgnoreNotFound(err) != nil {
						controller.Log(ctx).Error("the page stays", "error", err)
					}
				}
			}
		}, controller.Writes[corev1.ConfigMap](wire.VerbDelete)),
	}
}

// resizeByWorkload compares the size of the workload with the size of the Site. If the program ends after it
// has deleted the workload, it makes the workload anew with the new size, and never resizes the volume.
func resizeByWorkload(ctx context.Context, s *Site, c *kube.Client) error {
	volume := newSizedPage(s, s.Name+"-volume", s.Spec.Size)
	if _, err := pagesOf(s, c).Get(ctx, volume.Name); kube.IsNotFound(err) {
		if _, err := pagesOf(s, c).Create(ctx, volume); err != nil {
			return err
		}
	}
	workload, err := pagesOf(s, c).Get(ctx, s.Name)
	if kube.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && sizeOf(workload) != s.Spec.Size {
		if err := deletePage(ctx, s, c, Page{Name: workload.Name, UID: workload.UID}); err != nil {
			return err
		}
		if _, err := kube.Apply(ctx, c, volume); err != nil {
			return err
		}
	}
	_, err = kube.Apply(ctx, c, newSizedPage(s, s.Name, s.Spec.Size))
	return err
}

// resizeEach compares the size of the workload, and applies the size of the volume, each by itself.
func resizeEach(ctx context.Context, s *Site, c *kube.Client) error {
	if _, err := kube.Apply(ctx, c, newSizedPage(s, s.Name+"-volume", s.Spec.Size)); err != nil {
		return err
	}
	workload, err := pagesOf(s, c).Get(ctx, s.Name)
	if kube.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && sizeOf(workload) != s.Spec.Size {
		if err := deletePage(ctx, s, c, Page{Name: workload.Name, UID: workload.UID}); err != nil {
			return err
		}
	}
	_, err = kube.Apply(ctx, c, newSizedPage(s, s.Name, s.Spec.Size))
	return err
}

// deleteVolumesByWorkload deletes the volumes between the size of the workload and the size of the Site. If
// the program ends after it has shrunk the workload, there is no difference any more, and the volumes stay.
func deleteVolumesByWorkload(ctx context.Context, s *Site, c *kube.Client) error {
	former, err := pagesOf(s, c).Get(ctx, s.Name)
	if kube.IgnoreNotFound(err) != nil {
		return err
	}
	if _, err := kube.Apply(ctx, c, newSizedPage(s, s.Name, s.Spec.Size)); err != nil {
		return err
	}
	if err := applyVolumes(ctx, s, c, int(s.Spec.Size)); err != nil || former == nil {
		return err
	}
	for i := int(s.Spec.Size); i < int(sizeOf(former)); i++ {
		if err := kube.IgnoreNotFound(pagesOf(s, c).Delete(ctx, volumeName(s, i))); err != nil {
			return err
		}
	}
	return nil
}

// applyVolumes applies the first pages of s.
func applyVolumes(ctx context.Context, s *Site, c *kube.Client, count int) error {
	for i := range count {
		if err := applyPage(ctx, s, c, volumeName(s, i)); err != nil {
			return err
		}
	}
	return nil
}

// deleteVolumesBySite deletes all volumes that the Site does not have.
func deleteVolumesBySite(ctx context.Context, s *Site, c *kube.Client) error {
	if _, err := kube.Apply(ctx, c, newSizedPage(s, s.Name, s.Spec.Size)); err != nil {
		return err
	}
	return scale(ctx, s, c, int(s.Spec.Size), s.Name)
}

// scale makes s have the first volumes and no others, and leaves the other pages in keep.
func scale(ctx context.Context, s *Site, c *kube.Client, count int, keep ...string) error {
	if err := applyVolumes(ctx, s, c, count); err != nil {
		return err
	}
	for i := range count {
		keep = append(keep, volumeName(s, i))
	}
	return deleteOtherPages(ctx, s, c, keep...)
}
