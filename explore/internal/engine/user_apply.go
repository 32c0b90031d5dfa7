package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// applyAsUser applies an object for the user. If an apply empties a map or a list that the user has filled before, an
// API server of Kubernetes makes null of it, and refuses the object: spec.options: Invalid value: "null". Then the user
// empties the fields by a patch first.
func applyAsUser(
	ctx context.Context, api kube.API[unstructured.Unstructured], object *unstructured.Unstructured,
) error {
	_, err := api.Apply(ctx, object)
	if !kube.IsInvalid(err) || !strings.Contains(err.Error(), `"null"`) {
		return err
	}
	stored, getErr := api.Get(ctx, object.GetName())
	if getErr != nil {
		return err
	}
	patch, isEmptied := emptyingPatch(object.Object, stored.Object)
	if !isEmptied {
		return err
	}
	if _, err := api.Patch(ctx, object.GetName(), kube.MergePatch(patch)); err != nil {
		return err
	}
	_, err = api.Apply(ctx, object)
	return err
}

// emptyingPatch returns the merge patch that empties the maps and lists of stored that are empty in wanted. It reports
// whether there are any. Example: {spec: {options: {}}} and {spec: {options: {a: 1}}} give {spec: {options: {a:
// null}}}.
func emptyingPatch(wanted, stored map[string]any) (patch map[string]any, isEmptied bool) {
	patch = make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch want := wanted[name].(type) {
		case map[string]any:
			have, _ := stored[name].(map[string]any)
			inner, isInnerEmptied := emptyingPatch(want, have)
			if len(want) == 0 && len(have) > 0 {
				for member := range have {
					inner[member] = nil
				}
				isInnerEmptied = true
			}
			if isInnerEmptied {
				patch[name] = inner
			}
		case []any:
			if have, _ := stored[name].([]any); len(want) == 0 && len(have) > 0 {
				patch[name] = []any{}
			}
		}
	}
	return patch, len(patch) > 0
}
