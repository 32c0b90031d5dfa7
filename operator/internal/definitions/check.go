package definitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Check returns an error if an apply of a definition would take values from objects of the cluster, or make the API
// server refuse their writes: see [Compare]. The error names each field, and the number of objects that it concerns.
//
// Check also returns an error if the apply would do more than one step of the replacement of a version, or a step for which
// the objects are not ready: see [StepProblems]. The error has the command to run, where migrate is the command of the program that
// migrates objects. raw is the definition that the cluster has, as JSON.
func Check(ctx context.Context, client *kube.Client, raw []byte, definition *crd.CustomResourceDefinition, migrate string) error {
	before, after, err := decode(raw, definition)
	if err != nil {
		return fmt.Errorf("compare the definitions of %s: %w", definition.Metadata.Name, err)
	}
	errs := []error{checkSteps(ctx, client, before, after, definition, migrate)}
	if changes := Compare(before.Spec, after.Spec); len(changes) > 0 {
		errs = append(errs, describeChanges(ctx, client, definition, changes))
	}
	return errors.Join(errs...)
}

// describeChanges returns an error with the changes and the numbers of objects that they concern.
func describeChanges(ctx context.Context, client *kube.Client, definition *crd.CustomResourceDefinition, changes []Change) error {
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

// storedDefinition is a definition with its status.
type storedDefinition struct {
	Spec   Spec `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

// decode returns two definitions: that of the cluster, before an apply, and that of the program, after the apply.
func decode(raw []byte, definition *crd.CustomResourceDefinition) (before, after storedDefinition, err error) {
	encoded, err := kube.Marshal(definition)
	if err == nil {
		err = errors.Join(kube.Unmarshal(raw, &before), kube.Unmarshal(encoded, &after))
	}
	return before, after, err
}

// checkSteps returns an error with the steps that an apply must not do now.
func checkSteps(ctx context.Context, client *kube.Client, before, after storedDefinition, definition *crd.CustomResourceDefinition, migrate string) error {
	var errs []error
	for _, problem := range StepProblems(before.Spec, after.Spec, before.Status.StoredVersions, migrate) {
		errs = append(errs, fmt.Errorf("%s: %s", definition.Metadata.Name, problem))
	}
	for _, version := range droppedVersions(before, after) {
		count, example, err := countManagers(ctx, client, before.Spec, definition, version)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("find the managedFields of %s in version %s: %w", definition.Metadata.Name, version, err))...)
		}
		if count > 0 {
			errs = append(errs, fmt.Errorf("%s: the program does not define version %s any more, and managedFields of %d objects have entries in it, such as %s. Each apply to these objects would fail: keep the version with NotServed, and run %s first",
				definition.Metadata.Name, version, count, example, migrate))
		}
	}
	return errors.Join(errs...)
}

// droppedVersions returns the versions of before that are not served, not stored and not in after.
func droppedVersions(before, after storedDefinition) (names []string) {
	for _, v := range before.Spec.Versions {
		if !v.Served && !slices.Contains(before.Status.StoredVersions, v.Name) && after.Spec.findVersion(v.Name) == nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// countManagers returns how many objects have entries of managedFields in a version, and the name of one of them.
func countManagers(ctx context.Context, client *kube.Client, before Spec, definition *crd.CustomResourceDefinition, version string) (count int, example string, err error) {
	i := slices.IndexFunc(before.Versions, func(v Version) bool { return v.Served })
	if i < 0 {
		return 0, "", nil // no version is served, so nobody can read the objects
	}
	r := resourceOf(definition, before.Versions[i].Name)
	for page, err := range (wire.Stream{Resource: r, Representation: wire.MetadataOnly}).Pages(ctx, client) {
		if err != nil {
			return 0, "", err
		}
		for _, item := range page.Items {
			var object struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
			}
			if err := kube.Unmarshal(item, &object); err != nil {
				return 0, "", err
			}
			if slices.ContainsFunc(object.Metadata.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == r.Group+"/"+version }) {
				count++
				example = strings.TrimPrefix(object.Metadata.Namespace+"/"+object.Metadata.Name, "/")
			}
		}
	}
	return count, example, nil
}

// resourceOf returns the resource of a definition in a version.
func resourceOf(definition *crd.CustomResourceDefinition, version string) wire.Resource {
	r := wire.Resource{Plural: definition.Spec.Names.Plural, ClusterScoped: definition.Spec.Scope == "Cluster"}
	r.Group, r.Version, r.Kind = definition.Spec.Group, version, definition.Spec.Names.Kind
	return r
}

// countObjects returns how many objects each change concerns, and how many objects exist.
func countObjects(ctx context.Context, client *kube.Client, definition *crd.CustomResourceDefinition, changes []Change) (counts []int, total int, err error) {
	counts = make([]int, len(changes))
	versions := make(map[string]bool)
	for _, change := range changes {
		versions[change.Version] = true
	}
	for version := range versions {
		r := resourceOf(definition, version)
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
