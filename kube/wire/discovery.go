package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Discover returns the resources that the server serves in a version of a group, without their
// subresources. It returns no resources if the server does not serve that version. It makes one request or two, which
// every authenticated user may make by default. An error means that the resources are not known. See
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api.
//
// An answer 404 alone proves nothing, because a proxy before the server may know no path at all. The version is absent
// if the list of all groups lacks it too.
func Discover(ctx context.Context, h Handler, gv schema.GroupVersion) ([]Resource, error) {
	response, err := h.Do(ctx, &Request{Verb: VerbGet, Resource: Resource{GroupVersionKind: gv.WithKind("")}})
	if is404(err) {
		versions, listErr := groupVersions(ctx, h)
		switch {
		case listErr != nil:
			err = errors.Join(err, listErr)
		case slices.Contains(versions, gv):
			err = fmt.Errorf("the server lists %s among its groups, and does not show its resources: %w", gv, err)
		default:
			return []Resource{}, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("discover the resources of %s: %w", gv, err)
	}
	var list metav1.APIResourceList
	if err := kubejson.Decode(response.Body, &list); err != nil {
		return nil, fmt.Errorf("discover the resources of %s: read the answer: %w", gv, err)
	}
	if list.Kind != "APIResourceList" {
		return nil, fmt.Errorf("discover the resources of %s: the answer is of the kind %q, not an APIResourceList",
			gv, list.Kind)
	}
	resources := make([]Resource, 0, len(list.APIResources))
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		resources = append(resources,
			Resource{GroupVersionKind: gv.WithKind(r.Kind), Plural: r.Name, ClusterScoped: !r.Namespaced})
	}
	return resources, nil
}

// DiscoverAll returns all resources that the server serves, without their subresources. Each resource
// comes once, in the first version of its group that has it, in the order of the server. It makes one
// request for each version of a group. An error means that the resources of some groups are not known. One
// cause is an aggregated server without an answer. The resources of the other groups are returned beside
// the error.
func DiscoverAll(ctx context.Context, h Handler) ([]Resource, error) {
	versions, err := groupVersions(ctx, h)
	if err != nil {
		return nil, err
	}
	var all []Resource
	var errs []error
	known := make(map[schema.GroupResource]bool)
	for _, gv := range versions {
		resources, err := Discover(ctx, h, gv)
		errs = append(errs, err)
		for _, r := range resources {
			if !known[r.GroupResource()] {
				known[r.GroupResource()] = true
				all = append(all, r)
			}
		}
	}
	return all, errors.Join(errs...)
}

// groupVersions returns the versions of all groups that the server serves, the core group first.
func groupVersions(ctx context.Context, h Handler) ([]schema.GroupVersion, error) {
	response, err := h.Do(ctx, &Request{Verb: VerbGet})
	if err != nil {
		return nil, fmt.Errorf("discover the groups of the server: %w", err)
	}
	var list metav1.APIGroupList
	if err := kubejson.Decode(response.Body, &list); err != nil {
		return nil, fmt.Errorf("discover the groups of the server: read the answer: %w", err)
	}
	if list.Kind != "APIGroupList" {
		return nil, fmt.Errorf("discover the groups of the server: the answer is of the kind %q, not an APIGroupList",
			list.Kind)
	}
	versions := []schema.GroupVersion{{Version: "v1"}}
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			versions = append(versions, schema.GroupVersion{Group: group.Name, Version: v.Version})
		}
	}
	return versions, nil
}

// is404 reports whether the answer to a request was 404.
func is404(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == http.StatusNotFound
}
