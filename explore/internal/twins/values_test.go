package twins

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// The operators of this file are right for each value of a Site that the user begins with. Some are wrong
// when the user changes a value. Others end when a value is missing.

// domainAnnotation is the annotation of a page with the domain of its Site.
const domainAnnotation = "twins.example.com/domain"

// newAddressedPage returns the desired page of s with its domain.
func newAddressedPage(s *Site) *corev1.ConfigMap {
	page := newMainPage(s)
	page.Annotations = maps.Clone(page.Annotations)
	if s.Spec.Domain != "" {
		metav1.SetMetaDataAnnotation(&page.ObjectMeta, domainAnnotation, s.Spec.Domain)
	}
	return page
}

// applyAddressedPage applies the page with its domain.
func applyAddressedPage(ctx context.Context, s *Site, c *kube.Client) error {
	_, err := kube.Apply(ctx, c, newAddressedPage(s))
	return err
}

// leaveAsIs changes nothing of a page that exists.
func leaveAsIs(*corev1.ConfigMap, *Site) {}

// owningClaims owns the volumes of the twins that have volumes of a class.
func owningClaims() controller.Option {
	return controller.Owns[corev1.PersistentVolumeClaim](controller.WriteVerbs(wire.VerbCreate, wire.VerbPatch, wire.VerbDelete))
}

// newClaim returns the desired volume of s. The server lets nobody change its class.
func newClaim(s *Site, name string) *corev1.PersistentVolumeClaim {
	return kube.OwnedBy(s, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &s.Spec.Class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	})
}

// keepClaim makes the volume of a Site if there is none. It keeps a volume of another class, and says
// nothing.
func keepClaim(ctx context.Context, s *Site, c *kube.Client) error {
	if err := applyMainPage(ctx, s, c); err != nil {
		return err
	}
	_, err := kube.Namespaced[corev1.PersistentVolumeClaim](c, s.Namespace).Create(ctx, newClaim(s, s.Name))
	if kube.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// moveToClass makes a volume for each class, and deletes the volumes of other classes.
func moveToClass(ctx context.Context, s *Site, c *kube.Client) error {
	if err := applyMainPage(ctx, s, c); err != nil {
		return err
	}
	desired := newClaim(s, s.Name+"-"+cmp.Or(s.Spec.Class, "default"))
	if _, err := kube.Apply(ctx, c, desired); err != nil {
		return err
	}
	claims := kube.Namespaced[corev1.PersistentVolumeClaim](c, s.Namespace)
	owned, err := claims.List(ctx, kube.OwnerIs(s))
	if err != nil {
		return err
	}
	for _, claim := range owned {
		if claim.Name == desired.Name {
			continue
		}
		if err := claims.Delete(ctx, claim.Name, kube.RequireUID(claim.UID)); err != nil && !kube.IsUIDConflict(err) && !kube.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// nowhere is a place where no page is served.
const nowhere = "nowhere"

// serving returns a function that makes the parts of a program with two controllers. One makes the page of
// each Site. The other one stands for the cluster, and serves the pages.
func serving(reconcile reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		cluster := controller.New(func(ctx context.Context, page *corev1.ConfigMap, c *kube.Client) (controller.Action, error) {
			served := fmt.Sprint(page.Data["place"] != nowhere)
			if page.Data["served"] == served {
				return controller.Done(), nil
			}
			_, err := kube.Namespaced[corev1.ConfigMap](c, page.Namespace).Modify(ctx, page.Name, func(page *corev1.ConfigMap) error {
				if page.Data == nil {
					page.Data = make(map[string]string)
				}
				page.Data["served"] = served
				return nil
			})
			return controller.Done(), kube.IgnoreNotFound(err)
		}, controller.Name("cluster"), controller.Reconciled(controller.Select(kube.LabelExists(siteLabel))), controller.Writes[corev1.ConfigMap](wire.VerbUpdate))
		return []operator.Part{newController(reconcile), cluster}
	}
}

// applyPlacedPage applies the page with its place.
func applyPlacedPage(ctx context.Context, s *Site, c *kube.Client) error {
	page := newLabelledPage(s)
	page.Data["place"] = s.Spec.Place
	_, err := kube.Apply(ctx, c, page)
	return err
}

// waitForService changes no page that is not served, so that it never corrects a place where no page is
// served.
func waitForService(ctx context.Context, s *Site, c *kube.Client) error {
	page, err := pagesOf(s, c).Get(ctx, pageName(s))
	switch {
	case kube.IsNotFound(err), err == nil && page.Data["served"] == "true":
		return applyPlacedPage(ctx, s, c)
	default:
		return err
	}
}

// scaleByTemplate makes new members with the text of the workload, before it gives the workload the text of
// the Site. When a text changes together with the size, new members have the former text for good.
func scaleByTemplate(ctx context.Context, s *Site, c *kube.Client) error {
	template, former := s.Spec.Text, 0
	workload, err := pagesOf(s, c).Get(ctx, s.Name)
	if kube.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		template, former = workload.Data["text"], int(sizeOf(workload))
	}
	keep := []string{s.Name}
	for i := range int(s.Spec.Size) {
		member := newPage(s, volumeName(s, i))
		keep = append(keep, member.Name)
		if i < former && template == s.Spec.Text {
			continue
		}
		if i >= former {
			member.Data["text"] = template
		}
		if _, err := kube.Apply(ctx, c, member); err != nil {
			return err
		}
	}
	if _, err := kube.Apply(ctx, c, newSizedPage(s, s.Name, s.Spec.Size)); err != nil {
		return err
	}
	return deleteOtherPages(ctx, s, c, keep...)
}

// crashing returns a maker of the parts of a program that ends when its reconcile function panics. A
// program in a process of its own ends so, unless its toolkit recovers panics as yare does.
func crashing(reconcile reconcileFunc) func() []operator.Part {
	return func() []operator.Part {
		crashed := make(chan error, 1)
		return []operator.Part{
			newController(func(ctx context.Context, s *Site, c *kube.Client) (err error) {
				defer func() {
					if value := recover(); value != nil {
						err = fmt.Errorf("panic: %v", value)
						select {
						case crashed <- err:
						default: // the program is ending
						}
					}
				}()
				return reconcile(ctx, s, c)
			}),
			operator.Task("end after a panic", func(ctx context.Context, _ *controller.Runtime) error {
				select {
				case err := <-crashed:
					return err
				case <-ctx.Done():
					return nil
				}
			}),
		}
	}
}

// requireLimits applies the page with its limits. A Site without limits ends the program.
func requireLimits(ctx context.Context, s *Site, c *kube.Client) error {
	page := newMainPage(s)
	page.Data["memory"] = s.Spec.Limits.Memory
	_, err := kube.Apply(ctx, c, page)
	return err
}

// applyLimits applies the page with its limits, which may be missing.
func applyLimits(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Spec.Limits == nil {
		return applyMainPage(ctx, s, c)
	}
	return requireLimits(ctx, s, c)
}

// requireKey applies the page with its login. A login without a key ends the program.
func requireKey(ctx context.Context, s *Site, c *kube.Client) error {
	if s.Spec.Login == nil {
		return applyMainPage(ctx, s, c)
	}
	page := newMainPage(s)
	page.Data["login"] = s.Spec.Login.Secret + "/" + *s.Spec.Login.Key
	_, err := kube.Apply(ctx, c, page)
	return err
}

// reportMissingKey applies the page with its login. If the login has no key, the Site has no page, and the
// status says why.
func reportMissingKey(ctx context.Context, s *Site, c *kube.Client) error {
	s.Status.Problem = ""
	if s.Spec.Login == nil || s.Spec.Login.Key != nil {
		if err := requireKey(ctx, s, c); err != nil {
			return err
		}
		return c.ApplyStatus(ctx, s)
	}
	s.Status.Problem = "spec.login.key is missing"
	if err := deleteOtherPages(ctx, s, c); err != nil {
		return err
	}
	return c.ApplyStatus(ctx, s)
}
