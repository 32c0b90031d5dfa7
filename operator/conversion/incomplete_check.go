package conversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// maxNamedIncomplete bounds how many incomplete objects an error names.
const maxNamedIncomplete = 20

// checkIncomplete returns an error for each version of kinds that the definitions begin to serve or to store and in
// which objects of the cluster would be incomplete. It reads the objects of the kinds with such a version, and converts
// them in this process. The error names the objects.
func checkIncomplete(
	ctx context.Context, client *kube.Client, kinds []*convert.Kind, definitions []*crd.CustomResourceDefinition,
) error {
	var errs []error
	for _, k := range kinds {
		name := definitionName(k)
		i := slices.IndexFunc(definitions, func(d *crd.CustomResourceDefinition) bool { return d.Metadata.Name == name })
		if i < 0 {
			continue
		}
		current, exists, err := clusterread.Find(ctx, client, manifests.DefinitionResource(), "", name)
		if err == nil && exists {
			err = checkIncompleteObjects(ctx, client, k, current, definitions[i].Spec.Versions)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// checkIncompleteObjects returns an error for each of versions in which objects would be incomplete, if current, the
// CustomResourceDefinition of the cluster, does not serve or store the version yet. For example, the cluster serves v1,
// and versions are v1 and v2: each object is read in v1 and converted to v2.
func checkIncompleteObjects(
	ctx context.Context, client *kube.Client, k *convert.Kind, current *clusterread.Object, versions []crd.Version,
) error {
	source, hasSource := readableVersion(k, current.Spec.Versions)
	var begun []string
	for _, v := range versions {
		isAsBefore := func(old clusterread.Version) bool {
			return old.Name == v.Name && (old.Served || !v.Served) && (old.Storage || !v.Storage)
		}
		if (v.Served || v.Storage) && !slices.ContainsFunc(current.Spec.Versions, isAsBefore) {
			begun = append(begun, v.Name)
		}
	}
	if !hasSource || len(begun) == 0 {
		return nil
	}
	incomplete := make(map[string][]string)
	for page, err := range (wire.Stream{Resource: source}).Pages(ctx, client) {
		if err != nil {
			return fmt.Errorf("find the objects that a conversion leaves incomplete: %w", err)
		}
		for _, item := range page.Items {
			for _, version := range begun {
				result, err := k.Convert(item, version)
				if err != nil {
					return fmt.Errorf("convert an object to %s: %w", version, err)
				}
				if result.IsIncomplete {
					incomplete[version] = append(incomplete[version], strings.TrimPrefix(result.Namespace+"/"+result.Name, "/"))
				}
			}
		}
	}
	var errs []error
	for _, version := range begun {
		if all := incomplete[version]; len(all) > 0 {
			errs = append(errs, fmt.Errorf("the conversion to %s leaves something out of %d objects, which nobody could write in this version and no controller would act on: mend them in %s first. The first ones are %s",
				version, len(all), source.Version, strings.Join(all[:min(len(all), maxNamedIncomplete)], ", ")))
		}
	}
	return errors.Join(errs...)
}

// readableVersion returns the version of k in which the cluster can be asked for objects with the fewest conversions.
// That is the version in which the objects are stored, if the cluster serves it, or else any version that the cluster
// serves. readableVersion reports false if k knows no version that the cluster serves.
func readableVersion(k *convert.Kind, current []clusterread.Version) (r wire.Resource, isFound bool) {
	for _, old := range current {
		for _, v := range k.Versions() {
			if old.Served && old.Name == v.Resource.Version && (!isFound || old.Storage) {
				r, isFound = v.Resource, true
			}
		}
	}
	return r, isFound
}
