package twins

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// SiteSpec is the desired state of a Site.
type SiteSpec struct {
	// Text is on each page.
	Text string `json:"text"`
	// Page is part of the name of the page, where a twin has one page.
	Page string `json:"page" crd:"default=main"`
	// Size is the number of pages, where a twin has several, or the size of the page.
	Size int32 `json:"size" crd:"minimum=0,maximum=3,default=1"`
	// Notes are the annotations of the page.
	Notes map[string]string `json:"notes,omitempty"`
	// Domain is an annotation of the page too, where a twin has addresses.
	Domain string `json:"domain,omitempty"`
	// Place is where the page is served, where a twin has places.
	Place string `json:"place,omitempty"`
	// Class is the class of the volume, where a twin has volumes of a class.
	Class string `json:"class,omitempty"`
	// Limits are what the page may use, where a twin has limits.
	Limits *Limits `json:"limits,omitempty"`
	// Login is where the password of the page is, where a twin has passwords.
	Login *Login `json:"login,omitempty"`
}

// Limits are what a page may use.
type Limits struct {
	Memory string `json:"memory"`
}

// Login refers to a key of a Secret.
type Login struct {
	Secret string  `json:"secret"`
	Key    *string `json:"key,omitempty"`
}

// SiteStatus is the observed state of a Site. Each twin uses some of the fields.
type SiteStatus struct {
	// Page is the name of the page.
	Page string `json:"page,omitempty"`
	// Size is how many pages there are, or the size of the page.
	Size int32 `json:"size,omitempty"`
	// Former are pages that have to be deleted.
	Former []Page `json:"former,omitempty"`
	// Checks is how often the Site was reconciled.
	Checks int64 `json:"checks,omitempty"`
	// Problem is why there is no page.
	Problem string `json:"problem,omitempty"`
	// Conditions and ObservedGeneration are as the conventions of Kubernetes have them.
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	// Seen is when the Site was reconciled last.
	Seen *metav1.Time `json:"seen,omitempty"`
}

// Page is one page of a Site.
type Page struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Definition returns the definition of Sites.
func (SiteSpec) Definition() kube.Definition {
	return kube.Definition{Group: "twins.example.com", Version: "v1", Kind: "Site"}
}

// Site is a number of pages.
type Site = kube.CustomResource[SiteSpec, SiteStatus]

// reconcileFunc is a function that reconciles a Site and needs no other call until something changes.
type reconcileFunc func(ctx context.Context, s *Site, c *kube.Client) error

// parts returns a function that makes the parts of a program with one controller.
func parts(reconcile reconcileFunc, options ...controller.Option) func() []operator.Part {
	return func() []operator.Part { return []operator.Part{newController(reconcile, options...)} }
}

// newController returns a controller that owns ConfigMaps.
func newController(reconcile reconcileFunc, options ...controller.Option) *controller.Controller[Site] {
	return controller.New(func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
		return controller.Done(), reconcile(ctx, s, c)
	}, append(options, controller.Owns[corev1.ConfigMap](
		controller.WriteVerbs(wire.VerbCreate, wire.VerbUpdate, wire.VerbPatch, wire.VerbDelete)))...)
}

// finalizer is the finalizer of the twins that have a cleanup.
const finalizer = "twins.example.com/pages"

// pagesOf returns the API of the ConfigMaps in the namespace of s.
func pagesOf(s *Site, c *kube.Client) kube.API[corev1.ConfigMap] {
	return kube.Namespaced[corev1.ConfigMap](c, s.Namespace)
}

// pageName returns the name of the page of s, where s has one page.
func pageName(s *Site) string { return s.Name + "-" + s.Spec.Page }

// volumeName returns the name of a page of s, where s has several pages.
func volumeName(s *Site, index int) string { return s.Name + "-" + strconv.Itoa(index) }

// newPage returns the desired page of s.
func newPage(s *Site, name string) *corev1.ConfigMap {
	return kube.OwnedBy(s, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Annotations: s.Spec.Notes},
		Data:       map[string]string{"text": s.Spec.Text},
	})
}

// newMainPage returns the desired page of s, where s has one page.
func newMainPage(s *Site) *corev1.ConfigMap { return newPage(s, pageName(s)) }

// newSizedPage returns the desired page of s with a size.
func newSizedPage(s *Site, name string, size int32) *corev1.ConfigMap {
	page := newPage(s, name)
	page.Data["size"] = fmt.Sprint(size)
	return page
}

// sizeOf returns the size of a page, or 0 if the page has none.
func sizeOf(page *corev1.ConfigMap) int32 {
	size, _ := strconv.ParseInt(page.Data["size"], 10, 32)
	return int32(size)
}

// applyPage applies the page of s.
func applyPage(ctx context.Context, s *Site, c *kube.Client, name string) error {
	_, err := kube.Apply(ctx, c, newPage(s, name))
	return err
}

// applyMainPage applies the only page of s.
func applyMainPage(ctx context.Context, s *Site, c *kube.Client) error {
	return applyPage(ctx, s, c, pageName(s))
}

// deletePage deletes one page and no other page of its name. The page may be gone already.
func deletePage(ctx context.Context, s *Site, c *kube.Client, page Page) error {
	err := pagesOf(s, c).Delete(ctx, page.Name, kube.RequireUID(page.UID))
	if kube.IsUIDConflict(err) {
		return nil
	}
	return kube.IgnoreNotFound(err)
}

// deleteOtherPages deletes the pages that s owns, except those with the names in keep.
func deleteOtherPages(ctx context.Context, s *Site, c *kube.Client, keep ...string) error {
	owned, err := pagesOf(s, c).List(ctx, kube.OwnerIs(s))
	if err != nil {
		return err
	}
	for _, page := range owned {
		if slices.Contains(keep, page.Name) {
			continue
		}
		if err := deletePage(ctx, s, c, Page{Name: page.Name, UID: page.UID}); err != nil {
			return err
		}
	}
	return nil
}
