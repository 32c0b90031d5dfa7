package migration

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// liveDefinition is a CustomResourceDefinition of the cluster.
type liveDefinition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Group    string              `json:"group"`
		Scope    string              `json:"scope"`
		Names    crd.Names           `json:"names"`
		Versions []definitionVersion `json:"versions"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

// definitionVersion is a version of a definition.
type definitionVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPIV3Schema schema `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status *struct{} `json:"status"`
	} `json:"subresources"`
}

// findDefinition returns the definition of a resource. A definition that does not exist is an error.
func findDefinition(ctx context.Context, client *kube.Client, r wire.Resource) (*liveDefinition, error) {
	response, err := client.Do(ctx,
		&wire.Request{Verb: wire.VerbGet, Resource: manifests.DefinitionResource(), Name: r.GroupResource().String()})
	if kube.IsNotFound(err) {
		return nil, explainMissing(ctx, client, r)
	}
	d := new(liveDefinition)
	if err == nil {
		err = kube.Unmarshal(response.Body, d)
	}
	if err != nil {
		return nil, fmt.Errorf("read the definition %s: %w", r.GroupResource(), err)
	}
	return d, nil
}

// explainMissing returns an error that says why the cluster has no definition of a resource.
func explainMissing(ctx context.Context, client *kube.Client, r wire.Resource) error {
	response, err := client.Do(ctx, &wire.Request{Verb: wire.VerbList, Resource: manifests.DefinitionResource()})
	var list struct {
		Items []liveDefinition `json:"items"`
	}
	if err == nil {
		err = kube.Unmarshal(response.Body, &list)
	}
	if err != nil {
		return fmt.Errorf(
			"the cluster has no definition %s, and it is not known whether the cluster has the kind under another plural: %w",
			r.GroupResource(), err)
	}
	for _, d := range list.Items {
		if d.Spec.Group == r.Group && d.Spec.Names.Kind == r.Kind {
			return fmt.Errorf("the cluster has the kind %s of %s under the plural %s, and the program has it under the plural %s: set Plural to %q in the Definition of the kind",
				r.Kind, r.Group, d.Spec.Names.Plural, r.Plural, d.Spec.Names.Plural)
		}
	}
	return fmt.Errorf("the cluster has no definition %s: see whether --kubeconfig and --context name the right cluster, and apply what the command manifests prints", r.GroupResource())
}

// check returns an error if the objects of the kind cannot be migrated, or must not.
func (d *liveDefinition) check(kind Kind, o *Options) error {
	name, storage := d.Metadata.Name, d.storageVersion()
	switch removed := d.indexOf(o.RemovedVersion); {
	case d.Metadata.DeletionTimestamp != nil:
		return fmt.Errorf("the definition %s is being deleted, with all its objects", name)
	case storage == "" || d.preferredVersion() == "":
		return fmt.Errorf("the definition %s in the cluster has no storage version or serves no version: apply what the command manifests prints", name)
	case removed >= 0 && o.RemovedVersion == storage:
		return fmt.Errorf("objects of %s are stored in %s, which --remove-version names: first apply the definition of a release that stores objects in another version, and run that release's command migrate", name, storage)
	case removed >= 0 && !slices.ContainsFunc(d.Spec.Versions,
		func(v definitionVersion) bool { return v.Served && v.Name != o.RemovedVersion }):
		return fmt.Errorf("%s is the only version of %s that is served, so --remove-version cannot remove it",
			o.RemovedVersion, name)
	case kind.StorageVersion != storage && removed < 0:
		return fmt.Errorf("the definition %s in the cluster stores objects in %s, and that of this program in %s: apply the definition of this program first, or run the program of the release whose definition the cluster has",
			name, storage, kind.StorageVersion)
	}
	return nil
}

// indexOf returns the index of a version in the definition, or -1.
func (d *liveDefinition) indexOf(name string) int {
	return slices.IndexFunc(d.Spec.Versions, func(v definitionVersion) bool { return v.Name == name })
}

// storageVersion returns the name of the version in which objects are stored, or "".
func (d *liveDefinition) storageVersion() string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// preferredVersion returns the name of the served version with the highest priority, or "".
func (d *liveDefinition) preferredVersion() string {
	preferred := ""
	for _, v := range d.Spec.Versions {
		if v.Served && (preferred == "" || version.CompareKubeAwareVersionStrings(v.Name, preferred) > 0) {
			preferred = v.Name
		}
	}
	return preferred
}

// isServed reports whether the server serves a version.
func (d *liveDefinition) isServed(name string) bool {
	i := d.indexOf(name)
	return i >= 0 && d.Spec.Versions[i].Served
}

// schemaOf returns the schema of a version, or nil if the definition lacks the version.
func (d *liveDefinition) schemaOf(name string) schema {
	if i := d.indexOf(name); i >= 0 {
		return d.Spec.Versions[i].Schema.OpenAPIV3Schema
	}
	return nil
}

// resource returns the resource in the version in which objects are read and written: the storage version, so that
// objects that are already stored in it need no conversion. If the storage version is not served, it is the preferred
// version.
func (d *liveDefinition) resource() wire.Resource {
	r := wire.Resource{Plural: d.Spec.Names.Plural, ClusterScoped: d.Spec.Scope == "Cluster"}
	r.Group, r.Kind, r.Version = d.Spec.Group, d.Spec.Names.Kind, d.storageVersion()
	if !d.isServed(r.Version) {
		r.Version = d.preferredVersion()
	}
	return r
}

// hasStatus reports whether a version has the subresource status.
func (d *liveDefinition) hasStatus(name string) bool {
	i := d.indexOf(name)
	return i >= 0 && d.Spec.Versions[i].Subresources.Status != nil
}

// hasSameSpec reports whether other, the same definition at another time, has the same spec.
func (d *liveDefinition) hasSameSpec(other *liveDefinition) bool {
	return d.Metadata.UID == other.Metadata.UID && d.Metadata.Generation == other.Metadata.Generation
}

// pruneStoredVersions sets status.storedVersions of the definition to its storage version. It returns an error if the
// definition has changed since d was read. It reports whether it has written anything.
func (d *liveDefinition) pruneStoredVersions(
	ctx context.Context, client *kube.Client, r wire.Resource,
) (hasWritten bool, err error) {
	for {
		now, err := findDefinition(ctx, client, r)
		if err != nil {
			return false, err
		}
		if !d.hasSameSpec(now) {
			return false, fmt.Errorf("somebody has changed the definition since the command read it, so objects may have been stored in another version meanwhile. status.storedVersions stays %v: run the command again", now.Status.StoredVersions)
		}
		want := []string{d.storageVersion()}
		if slices.Equal(now.Status.StoredVersions, want) {
			return false, nil
		}
		err = now.patch(ctx, client, "status", map[string]any{"status": map[string]any{"storedVersions": want}})
		if !kube.IsConflict(err) { // a conflict can be over a status that somebody has written
			return err == nil, err
		}
	}
}

// patch changes the definition by a merge patch. A definition that has changed since d was read is a conflict.
func (d *liveDefinition) patch(
	ctx context.Context, client *kube.Client, subresource string, change map[string]any,
) error {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = make(map[string]any)
		change["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = d.Metadata.UID, d.Metadata.ResourceVersion
	body, err := kube.Marshal(change)
	if err != nil {
		return err
	}
	_, err = client.Do(ctx, &wire.Request{
		Verb: wire.VerbPatch, Resource: manifests.DefinitionResource(), Name: d.Metadata.Name, Subresource: subresource,
		Query: managerQuery(), ContentType: wire.ContentMergePatch, Body: body,
		Preconditions: wire.Preconditions{UID: d.Metadata.UID, ResourceVersion: d.Metadata.ResourceVersion},
	})
	return err
}

// changeVersions writes the list of versions after change has changed it. It returns the definition that the server
// then has. It gives up the fields that its write owns. Otherwise the next server-side apply of a definition would be a
// conflict over the versions.
func changeVersions(
	ctx context.Context, client *kube.Client, r wire.Resource, change func(versions []any) []any,
) (*liveDefinition, error) {
	for {
		response, err := client.Do(ctx,
			&wire.Request{Verb: wire.VerbGet, Resource: manifests.DefinitionResource(), Name: r.GroupResource().String()})
		var raw struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				Versions []any `json:"versions"`
			} `json:"spec"`
		}
		if err == nil {
			err = kube.Unmarshal(response.Body, &raw)
		}
		if err == nil {
			d := &liveDefinition{Metadata: raw.Metadata}
			err = d.patch(ctx, client, "", map[string]any{"spec": map[string]any{"versions": change(raw.Spec.Versions)}})
		}
		if err == nil {
			err = releaseFields(ctx, client, r)
		}
		switch {
		case err == nil:
			return findDefinition(ctx, client, r)
		case !kube.IsConflict(err):
			return nil, fmt.Errorf("change the versions of the definition: %w", err)
		}
	}
}

// releaseFields removes the field manager of this package from the fields of the definition, apart from its status.
func releaseFields(ctx context.Context, client *kube.Client, r wire.Resource) error {
	d, err := findDefinition(ctx, client, r)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(d.Metadata.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Subresource == ""
	})
	if len(others) == len(d.Metadata.ManagedFields) {
		return nil
	}
	return d.patch(ctx, client, "", map[string]any{"metadata": map[string]any{"managedFields": others}})
}

// setNotServed returns versions in which the version of that name is not served.
func setNotServed(versions []any, name string) []any {
	for _, v := range versions {
		if fields, ok := v.(map[string]any); ok && fields["name"] == name {
			fields["served"] = false
		}
	}
	return versions
}

// withoutVersion returns versions without the version of that name.
func withoutVersion(versions []any, name string) []any {
	return slices.DeleteFunc(versions, func(v any) bool {
		fields, ok := v.(map[string]any)
		return ok && fields["name"] == name
	})
}
