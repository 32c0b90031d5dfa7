package history

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// ownership is what field managers own at one place of an object, as metadata.managedFields shows it. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
type ownership struct {
	// isWhole is true if everything at the place is owned.
	isWhole bool
	// sets are the parts of FieldsV1 that belong to the place.
	sets []map[string]any
}

// ownershipOf returns what the field managers that isIncluded selects own in an object.
func ownershipOf(object map[string]any, isIncluded func(manager string) bool) ownership {
	var o ownership
	for _, entry := range managedFields(object) {
		manager, _ := entry["manager"].(string)
		if set, ok := entry["fieldsV1"].(map[string]any); ok && isIncluded(manager) {
			o.sets = append(o.sets, set)
		}
	}
	return o
}

// managedFields returns the entries of metadata.managedFields.
func managedFields(object map[string]any) []map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	entries := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if entry, ok := item.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// isEmpty reports whether nothing is owned.
func (o ownership) isEmpty() bool { return !o.isWhole && len(o.sets) == 0 }

// isOwned reports whether the place itself is owned: its value, if it has no parts.
func (o ownership) isOwned() bool {
	return o.isWhole || slices.ContainsFunc(o.sets, func(set map[string]any) bool { return set["."] != nil })
}

// member returns the ownership of a member of an object.
func (o ownership) member(name string) ownership {
	return o.inside(func(key string) bool { return key == "f:"+name })
}

// item returns the ownership of an item of a list.
func (o ownership) item(index int, item any) ownership {
	return o.inside(func(key string) bool {
		kind, text, _ := strings.Cut(key, ":")
		var named any
		if json.Unmarshal([]byte(text), &named) != nil {
			return false
		}
		switch kind {
		case "k":
			return hasKeys(item, named)
		case "v":
			return isSameJSON(item, named)
		case "i":
			return isSameJSON(index, named)
		}
		return false
	})
}

// inside returns the ownership of the parts whose keys are selected. A part without parts of its own is
// owned as a whole.
func (o ownership) inside(isSelected func(key string) bool) ownership {
	if o.isWhole {
		return o
	}
	var part ownership
	for _, set := range o.sets {
		for key, value := range set {
			if key == "." || !isSelected(key) {
				continue
			}
			if inner, _ := value.(map[string]any); len(inner) > 0 {
				part.sets = append(part.sets, inner)
			} else {
				part.isWhole = true
			}
		}
	}
	return part
}

// hasKeys reports whether an item of a list has all members of keys.
func hasKeys(item, keys any) bool {
	members, ok := item.(map[string]any)
	wanted, isObject := keys.(map[string]any)
	if !ok || !isObject {
		return false
	}
	for name, value := range wanted {
		if !isSameJSON(members[name], value) {
			return false
		}
	}
	return true
}

// isSameJSON reports whether two values are the same in JSON: 1 and 1.0 are the same.
func isSameJSON(a, b any) bool {
	return reflect.DeepEqual(a, b) || jsonText(a) == jsonText(b)
}

// jsonText returns a value as JSON for people: < and > are not escaped.
func jsonText(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err.Error() // a value that came as JSON can be written as JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writerOf returns the field manager that wrote the second of two versions of an object, as far as managedFields show
// it: the manager with a new entry, or else a manager that owns a changed field.
func writerOf(before, after Version) string {
	old := managedFields(before.Object)
	newest, newestTime := "", ""
	for _, entry := range managedFields(after.Object) {
		isOld := slices.ContainsFunc(old, func(o map[string]any) bool { return reflect.DeepEqual(o, entry) })
		manager, _ := entry["manager"].(string)
		if at, _ := entry["time"].(string); !isOld && at >= newestTime {
			newest, newestTime = manager, at
		}
	}
	if newest != "" || before.Object == nil {
		return newest
	}
	// The times of the entries are in seconds: a second write of a manager in the same second leaves its
	// entry unchanged.
	noWords := &words{names: NewNames()}
	fields := fieldsOf(before, noWords, ownership{})
	for _, entry := range managedFields(after.Object) {
		manager, _ := entry["manager"].(string)
		owned := ownershipOf(after.Object, func(m string) bool { return m == manager })
		for path, f := range fieldsOf(after, noWords, owned) {
			if f.isOwned && f.value != fields[path].value {
				return manager
			}
		}
	}
	return ""
}
