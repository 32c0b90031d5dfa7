package operator

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// checkVersions returns an error for each kind that has two served versions with different fields, and is not among
// converted: an object would lose fields when it is written in one of the versions. converted are the kinds whose
// objects API servers convert by calls to the program.
func checkVersions(defines []kube.Type, converted map[schema.GroupKind]bool) error {
	versions := make(map[schema.GroupKind][]kube.Type)
	var errs []error
	for _, t := range defines {
		gk := t.Resource.GroupKind()
		if t.Definition.NotServed || converted[gk] {
			continue
		}
		for _, other := range versions[gk] {
			if other.Resource.Version == t.Resource.Version {
				continue // the same type, or an error of crd.From
			}
			isEqual, err := haveEqualSchemas(other, t)
			switch {
			case err != nil:
				return nil // crd.From reports it
			case !isEqual:
				errs = append(errs, fmt.Errorf("the versions %s and %s of %s have different fields, and nothing converts the objects: add conversion.Between of package operator/conversion to the parts, or set NotServed in one Definition",
					other.Resource.Version, t.Resource.Version, gk))
			}
		}
		versions[gk] = append(versions[gk], t)
	}
	return errors.Join(errs...)
}

// haveEqualSchemas reports whether two versions have the same schema, but for descriptions.
func haveEqualSchemas(a, b kube.Type) (bool, error) {
	var texts [2][]byte
	for i, t := range []kube.Type{a, b} {
		definition := *t.Definition
		definition.Source, definition.OtherSources = nil, nil
		t.Definition = &definition
		all, err := crd.From(t)
		if err != nil {
			return false, err
		}
		if texts[i], err = kube.Marshal(all[0].Spec.Versions[0].Schema); err != nil {
			return false, err
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}
