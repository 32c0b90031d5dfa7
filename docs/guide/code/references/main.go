// Command references reconciles Sites. A Site names a ConfigMap, and Policies select Sites by a
// label. A change of either reconciles the Sites that it concerns.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// SiteSpec is the desired state of a Site.
type SiteSpec struct {
	// The ConfigMap with the pages.
	Pages string `json:"pages" crd:"minLength=1"`
}

// Definition returns the definition of Sites.
func (SiteSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Site"}
}

// Site serves the pages of a ConfigMap.
type Site = kube.CustomResource[SiteSpec, kube.None]

// PolicySpec limits the Sites of a tier.
type PolicySpec struct {
	// The value of the label tier of the Sites.
	Tier string `json:"tier"`
	// How many pages a Site may have.
	MaxPages int `json:"maxPages" crd:"minimum=0"`
}

// Definition returns the definition of Policies.
func (PolicySpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Policy"}
}

// Policy limits Sites.
type Policy = kube.CustomResource[PolicySpec, kube.None]

func main() {
	byPages := kube.NewIndex("pages", func(s *Site) []string { return []string{s.Spec.Pages} })
	operator.Main(controller.New(reconcile,
		controller.Owns[corev1.ConfigMap](),
		controller.WatchesReferenced[corev1.ConfigMap](byPages),
		controller.Watches(sitesOf),
		controller.Reconciled(controller.IndexLabels("tier")),
	))
}

// sitesOf returns the keys of the Sites that a Policy limits.
func sitesOf(ctx context.Context, p *Policy, c *kube.Client) ([]kube.Key, error) {
	sites, err := kube.List[Site](ctx, c, p.Namespace, kube.Label("tier", p.Spec.Tier))
	return kube.KeysOf(sites...), err
}

func reconcile(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
	pages, err := kube.Get[corev1.ConfigMap](ctx, c, s.Namespace, s.Spec.Pages)
	if kube.IsNotFound(err) {
		return controller.Done(), nil // its creation reconciles the Site
	}
	if err != nil {
		return controller.Done(), err
	}
	policies, err := kube.List[Policy](ctx, c, s.Namespace)
	if err != nil {
		return controller.Done(), err
	}
	for _, p := range policies {
		if p.Spec.Tier == s.Labels["tier"] && len(pages.Data) > p.Spec.MaxPages {
			return controller.Done(), controller.Terminal(fmt.Errorf(
				"the ConfigMap %s has %d pages, and the Policy %s allows %d",
				pages.Name, len(pages.Data), p.Name, p.Spec.MaxPages))
		}
	}
	_, err = kube.Apply(ctx, c, kube.OwnedBy(s, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-served"},
		Data:       pages.Data,
	}))
	return controller.Done(), err
}
