package migration

import (
	"reflect"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
)

// fieldSet is the field set of a manager in the notation of managedFields (FieldsV1), as decoded JSON. "f:NAME" is a
// member of an object, "k:{KEYS}" or "v:VALUE" is an item of a list, and "." is the place itself. A place without
// anything below it is owned itself.
type fieldSet = map[string]any

// schema is an OpenAPI schema as decoded JSON. A nil schema is unknown.
type schema = map[string]any

// metadataField is the place of the metadata in a field set.
const metadataField = "f:metadata"

// ownedPart returns the part of a value that is owned. A place that is owned itself gives the whole value if the value
// has no parts with owners of their own: a scalar, an atomic list or an atomic map. Otherwise it gives an empty object.
//
// An example. Of {replicas: 2, paused: false, containers: [{name: a, image: x}, {name: b, image: y}]},
//
//	{"f:replicas": {}, "f:containers": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}}
//
// owns {replicas: 2, containers: [{name: b}]}.
func ownedPart(value any, owned fieldSet, s schema) any {
	switch v := value.(type) {
	case map[string]any:
		return ownedMembers(v, owned, s)
	case []any:
		if hasParts(owned) {
			return ownedItems(v, owned, s)
		}
	}
	return value
}

// hasParts reports whether parts of a place are owned, each by itself.
func hasParts(owned fieldSet) bool {
	_, itself := owned["."]
	return len(owned) > 1 || len(owned) == 1 && !itself
}

// ownedMembers returns the members of an object that are owned.
func ownedMembers(object map[string]any, owned fieldSet, s schema) map[string]any {
	if !hasParts(owned) && isAtomicMap(s) {
		return object
	}
	part := make(map[string]any)
	for place, below := range owned {
		name, isMember := strings.CutPrefix(place, "f:")
		member, exists := object[name]
		set, isSet := below.(fieldSet)
		if isMember && exists && isSet {
			part[name] = ownedPart(member, set, memberSchema(s, name))
		}
	}
	return part
}

// ownedItems returns the items of a list with keys, or of a set, that are owned, in the order of the list. An item with
// keys has its keys in any case.
func ownedItems(items []any, owned fieldSet, s schema) []any {
	itemSchema, _ := s["items"].(schema)
	found := make(map[int]any)
	for place, below := range owned {
		set, _ := below.(fieldSet)
		if text, ok := strings.CutPrefix(place, "v:"); ok {
			var value any
			if kube.Unmarshal([]byte(text), &value) != nil {
				continue
			}
			if i := slices.IndexFunc(items, func(item any) bool { return isEqual(item, value) }); i >= 0 {
				found[i] = items[i]
			}
		} else if text, ok := strings.CutPrefix(place, "k:"); ok {
			var keys map[string]any
			if kube.Unmarshal([]byte(text), &keys) != nil {
				continue
			}
			if i := indexOfKeys(items, keys, s); i >= 0 {
				item, _ := items[i].(map[string]any)
				part := ownedMembers(item, set, itemSchema)
				for key := range keys {
					if value, ok := item[key]; ok {
						part[key] = value
					}
				}
				found[i] = part
			}
		}
	}
	part := []any{}
	for i := range items {
		if item, ok := found[i]; ok {
			part = append(part, item)
		}
	}
	return part
}

// ownedFields returns the field set of value, a converted part, by the schema of its version. whole is the whole object
// in this version, and empty is what a part without values is converted to. The set follows the rules of a server-side
// apply. It lacks two kinds of places:
//
//   - A place that the whole object lacks.
//   - A place that has the same value in empty, unless old, the set before the conversion, has the place too: a field such as
//     "paused: false", which a converter always sets.
//
// The result is nil if no place is left. An example:
//
//	value  {schedule: "* 3", paused: false}
//	empty  {paused: false}
//	whole  {schedule: "30 3", paused: false}
//	old    {"f:hour": {}}
//	result {"f:schedule": {}}
func ownedFields(value, empty, whole any, old fieldSet, s schema) fieldSet {
	switch v := value.(type) {
	case map[string]any:
		if !isAtomicMap(s) && len(v) > 0 {
			return ownedFieldsOfMembers(v, empty, whole, old, s)
		}
	case []any:
		if kind := s["x-kubernetes-list-type"]; kind == "map" || kind == "set" {
			return ownedFieldsOfItems(v, empty, whole, old, s)
		}
	}
	if empty != nil && isEqual(value, empty) && old == nil {
		return nil
	}
	return fieldSet{}
}

// ownedFieldsOfMembers returns the field set of an object that is not empty: see [ownedFields].
func ownedFieldsOfMembers(value map[string]any, empty, whole any, old fieldSet, s schema) fieldSet {
	emptyMembers, _ := empty.(map[string]any)
	wholeMembers, _ := whole.(map[string]any)
	fields := fieldSet{}
	for name, member := range value {
		wholeMember, exists := wholeMembers[name]
		if !exists {
			continue
		}
		oldMember, _ := old["f:"+name].(fieldSet)
		below := ownedFields(member, emptyMembers[name], wholeMember, oldMember, memberSchema(s, name))
		if below == nil {
			continue
		}
		// A member of a map is a place itself. A member of an object with properties is not.
		if properties, _ := s["properties"].(schema); properties[name] == nil && len(below) > 0 {
			below["."] = fieldSet{}
		}
		fields["f:"+name] = below
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// ownedFieldsOfItems returns the field set of a list with keys or of a set: see [ownedFields].
func ownedFieldsOfItems(value []any, empty, whole any, old fieldSet, s schema) fieldSet {
	itemSchema, _ := s["items"].(schema)
	emptyItems, _ := empty.([]any)
	wholeItems, _ := whole.([]any)
	fields := fieldSet{}
	for _, item := range value {
		place, keys := placeOfItem(item, s)
		indexIn := func(items []any) int {
			if keys != nil {
				return indexOfKeys(items, keys, s)
			}
			return slices.IndexFunc(items, func(other any) bool { return isEqual(other, item) })
		}
		i, e := indexIn(wholeItems), indexIn(emptyItems)
		if place == "" || i < 0 {
			continue
		}
		oldItem, _ := old[place].(fieldSet)
		if keys == nil {
			if e < 0 || oldItem != nil {
				fields[place] = fieldSet{}
			}
			continue
		}
		var emptyItem any
		if e >= 0 {
			emptyItem = emptyItems[e]
		}
		below := ownedFields(item, emptyItem, wholeItems[i], oldItem, itemSchema)
		if below == nil {
			continue
		}
		if len(below) > 0 {
			below["."] = fieldSet{}
		}
		fields[place] = below
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// placeOfItem returns the place of an item of a list with keys or of a set, and its keys. The place of an item without
// any of its keys is empty.
func placeOfItem(item any, s schema) (place string, keys map[string]any) {
	prefix, value := "v:", item
	if s["x-kubernetes-list-type"] == "map" {
		if keys = keysOfItem(item, s); len(keys) == 0 {
			return "", keys
		}
		prefix, value = "k:", keys
	}
	text, err := kube.Marshal(value) // a map has its members in the order of their names
	if err != nil {
		return "", keys
	}
	return prefix + string(text), keys
}

// keysOfItem returns the keys of an item of a list with keys. A key that the item lacks has its default.
func keysOfItem(item any, s schema) map[string]any {
	names, _ := s["x-kubernetes-list-map-keys"].([]any)
	members, _ := item.(map[string]any)
	itemSchema, _ := s["items"].(schema)
	keys := make(map[string]any)
	for _, name := range names {
		name, _ := name.(string)
		key := members[name]
		if key == nil {
			key = memberSchema(itemSchema, name)["default"]
		}
		if key != nil {
			keys[name] = key
		}
	}
	return keys
}

// indexOfKeys returns the index of the first item of a list with these keys, or -1. Without a schema, an item has those
// of its members as keys that keys names.
func indexOfKeys(items []any, keys map[string]any, s schema) int {
	return slices.IndexFunc(items, func(item any) bool {
		has, _ := item.(map[string]any)
		if s["x-kubernetes-list-type"] == "map" {
			has = keysOfItem(item, s)
		}
		for name, value := range keys {
			if !isEqual(has[name], value) {
				return false
			}
		}
		return true
	})
}

// isEqual reports whether two values of decoded JSON are equal.
func isEqual(a, b any) bool { return reflect.DeepEqual(a, b) }

// isAtomicMap reports whether an object is owned as a whole.
func isAtomicMap(s schema) bool { return s["x-kubernetes-map-type"] == "atomic" }

// memberSchema returns the schema of a member of an object.
func memberSchema(s schema, name string) schema {
	properties, _ := s["properties"].(schema)
	if member, ok := properties[name].(schema); ok {
		return member
	}
	additional, _ := s["additionalProperties"].(schema)
	return additional
}

// union returns the union of two field sets. It may change a. A set without places is the place itself.
func union(a, b fieldSet) fieldSet {
	if (len(a) == 0) != (len(b) == 0) {
		united := fieldSet{".": fieldSet{}}
		for _, set := range []fieldSet{a, b} {
			for place, below := range set {
				united[place] = below
			}
		}
		return united
	}
	for place, below := range b {
		mine, both := a[place].(fieldSet)
		if other, ok := below.(fieldSet); both && ok {
			a[place] = union(mine, other)
		} else {
			a[place] = below
		}
	}
	return a
}
