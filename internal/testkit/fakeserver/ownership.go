package fakeserver

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/yare-go/yare/kube/wire"
)

// schema is the schema of every object. Its named fields mean the same wherever they are. A server removes
// a named field if an apply removes all that it contains, and keeps other fields as empty objects.
const schema = `types:
- name: object
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map:
    elementType: {namedType: object}
    fields:
    - {name: metadata, type: {namedType: object}}
    - {name: spec, type: {namedType: object}}
    - {name: status, type: {namedType: object}}
    - {name: data, type: {namedType: object}}
    - {name: template, type: {namedType: object}}
    - {name: labels, type: {namedType: object}}
    - {name: annotations, type: {namedType: object}}
    - {name: finalizers, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: ownerReferences, type: {list: {elementType: {namedType: atomic}, elementRelationship: associative, keys: [uid]}}}
    - {name: conditions, type: {list: {elementType: {namedType: object}, elementRelationship: associative, keys: [type]}}}
    - {name: containers, type: {list: {elementType: {namedType: object}, elementRelationship: associative, keys: [name]}}}
    - {name: initContainers, type: {list: {elementType: {namedType: object}, elementRelationship: associative, keys: [name]}}}
    - {name: volumes, type: {list: {elementType: {namedType: object}, elementRelationship: associative, keys: [name]}}}
    - {name: env, type: {list: {elementType: {namedType: object}, elementRelationship: associative, keys: [name]}}}
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
`

// manager is the owner of the fields that a request sets.
type manager struct{ name, operation, apiVersion, subresource string }

func managerOf(r *wire.Request) manager {
	m := manager{
		cmp.Or(r.Query.Get("fieldManager"), "unknown"), "Update", r.Resource.GroupVersion().String(), r.Subresource,
	}
	if r.ContentType == wire.ContentApply {
		m.operation = "Apply"
	}
	return m
}

// key returns the key of the manager in the sets of owners.
func (m manager) key() string {
	entry := map[string]any{
		"manager": m.name, "operation": m.operation, "apiVersion": m.apiVersion, "fieldsType": "FieldsV1",
	}
	if m.subresource != "" {
		entry["subresource"] = m.subresource
	}
	return string(encode(entry))
}

// fieldOwnership computes who owns the fields of objects, with the code of API servers.
type fieldOwnership struct {
	objects typed.ParseableType
	updater *merge.Updater
	// ignoresUpdates is true if only applies are recorded.
	ignoresUpdates bool
}

func newFieldOwnership() *fieldOwnership {
	parser, err := typed.NewParser(schema)
	if err != nil {
		panic(err) // schema is a constant
	}
	return &fieldOwnership{
		objects: parser.Type("object"), updater: (&merge.UpdaterBuilder{Converter: sameVersion{}}).BuildUpdater(),
	}
}

// sameVersion is a converter for objects of one version.
type sameVersion struct{}

func (sameVersion) Convert(v *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return v, nil
}
func (sameVersion) IsMissingVersionError(error) bool { return false }

// onlyVersion is the version of all objects for the updater. The keys of managers have the versions that
// clients see.
const onlyVersion = fieldpath.APIVersion("v1")

// recordUpdate records the manager in content as the owner of the fields that differ from live. The request
// is not an apply.
func (f *fieldOwnership) recordUpdate(m manager, live, content map[string]any) error {
	if f.ignoresUpdates {
		return nil
	}
	owned, err := ownersOf(live)
	if err != nil {
		return err
	}
	before, err := f.objects.FromUnstructured(managedPart(live, m.subresource), typed.AllowDuplicates)
	if err != nil {
		return err
	}
	after, err := f.objects.FromUnstructured(managedPart(content, m.subresource), typed.AllowDuplicates)
	if err != nil {
		return err
	}
	// Under a key of its own, the update shows which fields it took.
	const thisUpdate = "this update"
	_, sets, err := f.updater.Update(before, after, onlyVersion, owned.sets, thisUpdate)
	if err != nil {
		return err
	}
	if taken := withoutUnowned(sets[thisUpdate]); taken != nil {
		set := taken.Set()
		if former := sets[m.key()]; former != nil {
			set = set.Union(former.Set())
		}
		sets[m.key()] = fieldpath.NewVersionedSet(set, onlyVersion, false)
		owned.times[m.key()] = now()
	}
	delete(sets, thisUpdate)
	owned.sets = sets
	owned.write(content)
	return nil
}

// apply returns live after an apply of wanted, without the fields that only a server sets. The error is
// merge.Conflicts if other managers own fields that the apply changes and the apply is not forced.
func (f *fieldOwnership) apply(m manager, live, wanted map[string]any, force bool) (map[string]any, error) {
	owned, err := ownersOf(live)
	if err != nil {
		return nil, err
	}
	before, err := f.objects.FromUnstructured(managedPart(live, m.subresource), typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	config, err := f.objects.FromUnstructured(managedPart(wanted, m.subresource))
	if err != nil {
		return nil, err
	}
	after, sets, err := f.updater.Apply(before, config, onlyVersion, owned.sets, m.key(), force)
	if err != nil {
		return nil, err
	}
	content := managedPart(live, m.subresource)
	if after != nil { // the apply changes more than the ownership
		content, _ = after.AsValue().Unstructured().(map[string]any)
		if content = clone(content); content == nil {
			content = map[string]any{}
		}
		owned.times[m.key()] = now()
	}
	owned.sets = sets
	owned.write(content)
	return content, nil
}

// managedPart returns a copy of the part of an object that requests to the object or to its status change.
// It has the uid too, because an apply of a status may name another uid.
func managedPart(content map[string]any, subresource string) map[string]any {
	part := make(map[string]any, len(content))
	for name, v := range content {
		if name == "metadata" || name != "apiVersion" && name != "kind" && (name == "status") == (subresource == "status") {
			part[name] = cloneAny(v)
		}
	}
	if metadata, ok := part["metadata"].(map[string]any); ok {
		for name := range metadata {
			isSystem := slices.Contains([]string{"name", "namespace", "resourceVersion", "generation", "creationTimestamp",
				"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"}, name)
			if isSystem || subresource == "status" && name != "uid" {
				delete(metadata, name)
			}
		}
	}
	return part
}

// owners are the owners of an object's fields.
type owners struct {
	// sets are the fields by the keys of the managers.
	sets fieldpath.ManagedFields
	// times are the times of the last changes by the keys of the managers. A manager has no time until an
	// apply of the manager changes more than the ownership.
	times map[string]any
}

// ownersOf reads the owners from metadata.managedFields.
func ownersOf(content map[string]any) (owners, error) {
	o := owners{fieldpath.ManagedFields{}, make(map[string]any)}
	metadata, _ := content["metadata"].(map[string]any)
	for _, each := range listOf(metadata, "managedFields") {
		entry := maps.Clone(each.(map[string]any))
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(encode(entry["fieldsV1"]))); err != nil {
			return owners{}, err
		}
		time := entry["time"]
		delete(entry, "fieldsV1")
		delete(entry, "time")
		key := string(encode(entry))
		o.sets[key] = fieldpath.NewVersionedSet(set, onlyVersion, entry["operation"] == "Apply")
		if time != nil {
			o.times[key] = time
		}
	}
	return o, nil
}

// write writes the owners into metadata.managedFields, in the order of servers.
func (o owners) write(content map[string]any) {
	var entries []any
	for key, set := range o.sets {
		if set = withoutUnowned(set); set == nil {
			continue
		}
		entry := decoded([]byte(key))
		fields, err := set.Set().ToJSON()
		if err != nil {
			panic(err) // each set was read from JSON or made from an object
		}
		entry["fieldsV1"] = decoded(fields)
		if time := o.times[key]; time != nil {
			entry["time"] = time
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(x, y any) int {
		a, b := x.(map[string]any), y.(map[string]any)
		return cmp.Or(cmp.Compare(textOf(a, "operation"), textOf(b, "operation")),
			cmp.Compare(textOf(a, "time"), textOf(b, "time")),
			cmp.Compare(textOf(a, "manager"), textOf(b, "manager")),
			cmp.Compare(textOf(a, "subresource"), textOf(b, "subresource")))
	})
	metadata := metadataOf(content)
	if metadata["managedFields"] = entries; len(entries) == 0 {
		delete(metadata, "managedFields")
	}
}

// withoutUnowned returns a set without the fields that nobody owns, or nil if no field is left.
func withoutUnowned(set fieldpath.VersionedSet) fieldpath.VersionedSet {
	if set == nil {
		return nil
	}
	unowned := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("metadata", "uid"))
	rest := set.Set().Difference(unowned)
	if rest.Empty() {
		return nil
	}
	return fieldpath.NewVersionedSet(rest, set.APIVersion(), set.Applied())
}
