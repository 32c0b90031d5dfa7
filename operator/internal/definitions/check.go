package definitions

import (
	"context"
	"errors"
	"fmt"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Check returns an error if an apply of a definition would take values from objects of the cluster, or make the API
// server refuse their writes: see [Compare]. raw is the definition that the cluster has, as JSON. The error names each
// field, and the number of objects that it concerns.
func Check(ctx context.Context, client *kube.Client, raw []byte, definition *crd.CustomResourceDefinition) error {
	changes, err := changesOf(raw, definition)
	if err != nil || len(changes) == 0 {
		return err
	}
	counts, total, err := countObjects(ctx, client, definition, changes)
	if err != nil {
		return fmt.Errorf("check the objects of %s: %w", definition.Metadata.Name, err)
	}
	var errs []error
	for i, change := range changes {
		field := "version " + change.Version
		if change.Path != "" {
			field = change.Path + " in " + field
		}
		errs = append(errs, fmt.Errorf("%s: compared with the cluster, %s %s: this concerns %d of %d objects", definition.Metadata.Name, field, change.Text, counts[i], total))
	}
	return errors.Join(append(errs, fmt.Errorf("%s: the definition in the cluster allows what the program's definition does not: change the objects first, or leave the definition of the cluster as it is with --without-definitions", definition.Metadata.Name))...)
}

// changesOf compares the definition of the cluster with the definition of the program.
func changesOf(raw []byte, definition *crd.CustomResourceDefinition) ([]Change, error) {
	var before, after struct {
		Spec Definition `json:"spec"`
	}
	encoded, err := kube.Marshal(definition)
	if err == nil {
		err = errors.Join(kube.Unmarshal(raw, &before), kube.Unmarshal(encoded, &after))
	}
	if err != nil {
		return nil, fmt.Errorf("compare the definitions of %s: %w", definition.Metadata.Name, err)
	}
	return Compare(before.Spec, after.Spec), nil
}

// countObjects returns how many objects each change concerns, and how many objects exist.
func countObjects(ctx context.Context, client *kube.Client, definition *crd.CustomResourceDefinition, changes []Change) (counts []int, total int, err error) {
	counts = make([]int, len(changes))
	versions := make(map[string]bool)
	for _, change := range changes {
		versions[change.Version] = true
	}
	for version := range versions {
		r := wire.Resource{Plural: definition.Spec.Names.Plural, ClusterScoped: definition.Spec.Scope == "Cluster"}
		r.Group, r.Version, r.Kind = definition.Spec.Group, version, definition.Spec.Names.Kind
		total = 0
		for page, err := range (wire.Stream{Resource: r}).Pages(ctx, client) { // unstructured objects would cost each program 0.2 MB
			if err != nil {
				return nil, 0, err
			}
			for _, item := range page.Items {
				var object any
				if err := kube.Unmarshal(item, &object); err != nil {
					return nil, 0, err
				}
				total++
				for i, change := range changes {
					if change.Version == version && change.Concerns(object) {
						counts[i]++
					}
				}
			}
		}
	}
	return counts, total, nil
}
