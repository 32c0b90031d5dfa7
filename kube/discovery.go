package kube

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discover returns the resources that the server serves in a version of a group, without their
// subresources. It returns none if the server does not serve that version. It makes one request, which
// every authenticated user may make by default. An error means that the resources are not known. See
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api.
func Discover(ctx context.Context, h Handler, gv schema.GroupVersion) ([]Resource, error) {
	response, err := h.Do(ctx, &Request{Verb: VerbGet, Resource: Resource{GroupVersionKind: gv.WithKind("")}})
	if IsNotFound(err) || IsNoResource(err) {
		return []Resource{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discover the resources of %s: %w", gv, err)
	}
	var list metav1.APIResourceList
	if err := unmarshalNew(response.Body, &list); err != nil {
		return nil, fmt.Errorf("discover the resources of %s: read the answer: %w", gv, err)
	}
	resources := make([]Resource, 0, len(list.APIResources))
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		resources = append(resources, Resource{GroupVersionKind: gv.WithKind(r.Kind), Plural: r.Name, ClusterScoped: !r.Namespaced})
	}
	return resources, nil
}
