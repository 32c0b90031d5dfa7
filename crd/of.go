package crd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Of returns the CustomResourceDefinition of T, with T's version as its only one. The error
// names every problem that the type has, not only the first.
//
// Of and [From] also accept a type whose Definition is Foreign. Its CustomResourceDefinition
// has the fields of the Go type only: apply it nowhere but to a cluster for tests.
func Of[T any, P kube.DefinedObjectOf[T]]() (*CustomResourceDefinition, error) {
	t, err := kube.TypeOf[T, P]()
	if err != nil {
		return nil, err
	}
	all, err := From(t)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// From returns the CustomResourceDefinitions of types, sorted by name. Types of one group and
// kind are versions of one resource. A type that is given twice counts once.
//
// The versions of a kind must have the same plural and scope. The versions that have short names or
// categories must have the same ones. Labels and annotations of all versions are merged. Objects
// are stored in the version whose Definition sets Storage, or else in the highest served version,
// by the priority of Kubernetes versions. Without a converter (Convert in package operator), the API
// server converts between versions by changing apiVersion only: a field is lost in a version that lacks
// the field.
func From(types ...kube.Type) ([]*CustomResourceDefinition, error) {
	var problems []error
	kinds := map[schema.GroupKind][]kube.Type{}
	var order []schema.GroupKind // the keys of kinds, so that equal types have equal problems
	for _, t := range types {
		if t.Definition == nil {
			problems = append(problems,
				fmt.Errorf("%s has no Definition: its resource %s is the server's own and needs no CustomResourceDefinition",
					ident.GoTypeName(t.Go), t.Resource))
			continue
		}
		gk := t.Resource.GroupKind()
		if kinds[gk] == nil {
			order = append(order, gk)
		}
		if !slices.ContainsFunc(kinds[gk], func(o kube.Type) bool { return o.Go == t.Go }) {
			kinds[gk] = append(kinds[gk], t)
		}
	}
	var all []*CustomResourceDefinition
	definedBy := map[string]kube.Type{}
	for _, gk := range order {
		versions := kinds[gk]
		c, err := mergeVersions(versions)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if other, taken := definedBy[c.Metadata.Name]; taken {
			problems = append(problems,
				fmt.Errorf("%s is the name of both kind %s (%s) and kind %s (%s): give one of them another Plural",
					c.Metadata.Name, other.Resource.Kind, ident.GoTypeName(other.Go), c.Spec.Names.Kind,
					ident.GoTypeName(versions[0].Go)))
			continue
		}
		definedBy[c.Metadata.Name] = versions[0]
		all = append(all, c)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	slices.SortFunc(all, func(a, b *CustomResourceDefinition) int {
		return cmp.Compare(a.Metadata.Name, b.Metadata.Name)
	})
	return all, nil
}

// mergeVersions returns the definition of a kind with these versions.
func mergeVersions(types []kube.Type) (*CustomResourceDefinition, error) {
	// Unlike slices.SortFunc, sort.Slice is not compiled anew for this type.
	sort.Slice(types, func(i, j int) bool {
		return version.CompareKubeAwareVersionStrings(types[i].Resource.Version, types[j].Resource.Version) > 0
	})
	first := types[0]
	names, problems := mergeNames(types)
	c := &CustomResourceDefinition{
		APIVersion: "apiextensions.k8s.io/v1",
		Kind:       "CustomResourceDefinition",
		Metadata:   Metadata{Name: first.Resource.String()},
		Spec:       Spec{Group: first.Resource.Group, Names: names, Scope: scopeName(first)},
	}
	c.Metadata.Labels, c.Metadata.Annotations = mergeMetadata(types, func(err error) { problems = append(problems, err) })
	if isCommunityGroup(first.Resource.Group) && c.Metadata.Annotations[approvalAnnotation] == "" {
		if c.Metadata.Annotations == nil {
			c.Metadata.Annotations = map[string]string{}
		}
		c.Metadata.Annotations[approvalAnnotation] = "unapproved, cut down for tests"
	}
	storage, served := -1, -1
	for i, t := range types {
		if served < 0 && !t.Definition.NotServed {
			served = i
		}
		if i > 0 && types[i-1].Resource.Version == t.Resource.Version {
			problems = append(problems, fmt.Errorf("%s and %s are both version %s of %s",
				ident.GoTypeName(types[i-1].Go), ident.GoTypeName(t.Go), t.Resource.Version, c.Metadata.Name))
		}
		if t.Definition.Storage {
			if storage >= 0 {
				problems = append(problems, fmt.Errorf("%s and %s both set Storage: objects of %s are stored in one version only",
					ident.GoTypeName(types[storage].Go), ident.GoTypeName(t.Go), c.Metadata.Name))
			}
			storage = i
		}
		v, err := newVersion(t)
		if err != nil {
			problems = append(problems, err)
		}
		c.Spec.Versions = append(c.Spec.Versions, v)
	}
	if served < 0 {
		problems = append(problems, fmt.Errorf("%s: no version of %s is served: leave NotServed out of a Definition",
			ident.GoTypeName(first.Go), c.Metadata.Name))
	}
	if storage < 0 {
		storage = max(served, 0)
	}
	c.Spec.Versions[storage].Storage = true
	return c, errors.Join(problems...)
}

// newVersion returns the version that t defines. It does not set Storage.
func newVersion(t kube.Type) (Version, error) {
	b := newBuilder(t)
	root := b.schemaOfObject(t)
	if len(b.problems.all) == 0 { // fields with problems have no schema, and neither have those within
		b.tags.checkPaths(root)
		b.sources.checkUse(ident.GoTypeName(t.Go))
	}
	v := Version{
		Name:               t.Resource.Version,
		Served:             !t.Definition.NotServed,
		Deprecated:         t.Definition.Deprecated != "",
		DeprecationWarning: t.Definition.Deprecated,
		Schema:             VersionSchema{OpenAPIV3Schema: root},
		Columns:            b.columns.all(root, t.Definition.Columns),
		SelectableFields:   b.selectables.all,
	}
	if b.hasStatus {
		v.Subresources = &Subresources{Status: &struct{}{}}
	}
	if t.Definition.Scale != nil {
		if v.Subresources == nil {
			v.Subresources = &Subresources{}
		}
		v.Subresources.Scale = newScale(root, ident.GoTypeName(t.Go), *t.Definition.Scale, b.problems)
	}
	return v, errors.Join(b.problems.all...)
}
