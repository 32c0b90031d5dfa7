package history

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Resources returns the resources in namespaces that the server lists and watches. Events are included once,
// because the Events of events.k8s.io are the same objects. It makes two requests for each version of a group.
func Resources(ctx context.Context, h wire.Handler) ([]wire.Resource, error) {
	all, err := wire.DiscoverAll(ctx, h)
	if err != nil {
		return nil, err
	}
	verbs := make(map[schema.GroupVersion]map[string]metav1.Verbs)
	var watched []wire.Resource
	for _, r := range all {
		gv := r.GroupVersion()
		if verbs[gv] == nil {
			if verbs[gv], err = verbsOf(ctx, h, gv); err != nil {
				return nil, err
			}
		}
		allowed := verbs[gv][r.Plural]
		if !r.ClusterScoped && slices.Contains(allowed, "list") && slices.Contains(allowed, "watch") &&
			r.Group != "events.k8s.io" {
			watched = append(watched, r)
		}
	}
	return watched, nil
}

// verbsOf returns the verbs of each resource of a version of a group, by plural names.
func verbsOf(ctx context.Context, h wire.Handler, gv schema.GroupVersion) (map[string]metav1.Verbs, error) {
	response, err := h.Do(ctx,
		&wire.Request{Verb: wire.VerbGet, Resource: wire.Resource{GroupVersionKind: gv.WithKind("")}})
	if err != nil {
		return nil, fmt.Errorf("discover the verbs of %s: %w", gv, err)
	}
	var list metav1.APIResourceList
	if err := kube.Unmarshal(response.Body, &list); err != nil {
		return nil, fmt.Errorf("discover the verbs of %s: read the answer: %w", gv, err)
	}
	verbs := make(map[string]metav1.Verbs, len(list.APIResources))
	for _, r := range list.APIResources {
		verbs[r.Name] = r.Verbs
	}
	return verbs, nil
}
