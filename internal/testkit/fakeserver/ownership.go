package fakeserver

import (
	"cmp"
	"reflect"
	"slices"
)

// own records what a request other than an apply changed: the manager owns the fields that are new or
// different in after, nobody owns the fields that are gone, and no other manager owns the different fields.
func own(content, before, after map[string]any, m manager) {
	changed, gone := fieldSet{}, fieldSet{}
	compare(before, after, "", changed, gone)
	metadata := metadataOf(content)
	owned, time := fieldSet{}, timeOf(content, m)
	var rest []any
	for _, each := range listOf(metadata, "managedFields") {
		entry := each.(map[string]any)
		set, _ := entry["fieldsV1"].(fieldSet)
		minus(set, gone)
		if m.is(entry) {
			owned = set
			continue
		}
		if minus(set, changed); len(set) > 0 {
			withoutLoneParents(set)
			rest = append(rest, entry)
		}
	}
	if metadata["managedFields"] = rest; len(rest) == 0 {
		delete(metadata, "managedFields")
	}
	if len(changed) > 0 {
		setOwned(content, m, union(owned, changed), now())
	} else if len(owned) > 0 {
		setOwned(content, m, owned, time)
	}
}

// compare adds to changed the fields that are new or different in after, and to gone the fields that
// are in before only.
func compare(before, after map[string]any, field string, changed, gone fieldSet) {
	b, a := withParents(fieldsOf(before, field)), withParents(fieldsOf(after, field))
	minus(union(gone, b), a)
	different(b, a, before, after, field, changed)
}

// withParents adds to the fields of an object the fields that contain others: an update owns these
// parents, and an apply does not. Nobody owns the metadata as a whole.
func withParents(set fieldSet) fieldSet {
	for name, v := range set {
		child := v.(fieldSet)
		if withParents(child); len(child) > 0 && name != "f:metadata" {
			child["."] = fieldSet{}
		}
	}
	return set
}

// withoutLoneParents returns set as servers write it: a field that contains no owned field looks
// like a field without children.
func withoutLoneParents(set fieldSet) fieldSet {
	for _, v := range set {
		child := v.(fieldSet)
		if _, has := child["."]; has && len(child) == 1 {
			delete(child, ".")
		}
		withoutLoneParents(child)
	}
	return set
}

func different(b, a fieldSet, before, after any, field string, changed fieldSet) {
	for name, v := range a {
		was, had := b[name].(fieldSet)
		set := v.(fieldSet)
		switch {
		case !had:
			changed[name] = clone(set)
		case name == ".":
		case len(was) > 0 && len(set) > 0:
			below := fieldSet{}
			different(was, set, child(before, field, name), child(after, field, name), fieldName(name), below)
			if len(below) > 0 {
				changed[name] = below
			}
		case !reflect.DeepEqual(child(before, field, name), child(after, field, name)):
			changed[name] = clone(set)
		}
	}
}

// timeOf returns the time in the entry of a manager, or nil.
func timeOf(content map[string]any, m manager) any {
	for _, each := range listOf(metadataOf(content), "managedFields") {
		if entry := each.(map[string]any); m.is(entry) {
			return entry["time"]
		}
	}
	return nil
}

// setOwned makes a manager the owner of exactly these fields. The entry has no time if time is nil,
// which is the case until an apply of the manager changes more than the ownership.
func setOwned(content map[string]any, m manager, fields fieldSet, time any) {
	metadata := metadataOf(content)
	var rest []any
	for _, each := range listOf(metadata, "managedFields") {
		entry := each.(map[string]any)
		set, _ := entry["fieldsV1"].(fieldSet)
		if !m.is(entry) && len(set) > 0 {
			withoutLoneParents(set)
			rest = append(rest, entry)
		}
	}
	if len(fields) > 0 {
		entry := map[string]any{
			"manager": m.name, "operation": m.operation, "apiVersion": m.apiVersion,
			"fieldsType": "FieldsV1", "fieldsV1": withoutLoneParents(clone(fields)),
		}
		if time != nil {
			entry["time"] = time
		}
		if m.subresource != "" {
			entry["subresource"] = m.subresource
		}
		rest = append(rest, entry)
	}
	slices.SortStableFunc(rest, func(x, y any) int {
		a, b := x.(map[string]any), y.(map[string]any)
		return cmp.Or(cmp.Compare(textOf(a, "operation"), textOf(b, "operation")), cmp.Compare(textOf(a, "time"), textOf(b, "time")),
			cmp.Compare(textOf(a, "manager"), textOf(b, "manager")), cmp.Compare(textOf(a, "subresource"), textOf(b, "subresource")))
	})
	if metadata["managedFields"] = rest; len(rest) == 0 {
		delete(metadata, "managedFields")
	}
}

// restoreManaged gives content the owners of live.
func restoreManaged(content, live map[string]any) {
	if managed := listOf(metadataOf(live), "managedFields"); managed != nil {
		metadataOf(content)["managedFields"] = clone(managed)
	} else {
		delete(metadataOf(content), "managedFields")
	}
}

// unmanaged returns content without managedFields.
func unmanaged(content map[string]any) map[string]any {
	rest := make(map[string]any, len(content))
	for k, v := range content {
		rest[k] = v
	}
	metadata := make(map[string]any)
	for k, v := range metadataOf(content) {
		if k != "managedFields" && k != "resourceVersion" {
			metadata[k] = v
		}
	}
	rest["metadata"] = metadata
	return rest
}
