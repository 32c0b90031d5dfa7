package migration

import (
	"maps"
	"reflect"
	"slices"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
	"github.com/yare-go/yare/kube"
)

// schema is an OpenAPI schema as decoded JSON. A nil schema is unknown.
type schema = map[string]any

// ownedPart returns the part of a value that is owned. An item of a list with keys has its keys in any case.
//
// An example. Of {replicas: 2, paused: false, containers: [{name: a, image: x}, {name: b, image: y}]},
//
//	{"f:replicas": {}, "f:containers": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}}
//
// owns {replicas: 2, containers: [{name: b}]}.
//
// A place that is owned itself gives the whole value if the value has no parts with owners of their own: a scalar, an
// atomic list or an atomic map. Otherwise it gives an empty object.
func ownedPart(value any, owned fieldset.Set, s schema) any {
	switch v := value.(type) {
	case map[string]any:
		return ownedMembers(v, owned, s)
	case []any:
		if fieldset.HasParts(owned) {
			return ownedItems(v, owned, s)
		}
	}
	return value
}

// ownedMembers returns the members of an object that are owned.
func ownedMembers(object map[string]any, owned fieldset.Set, s schema) map[string]any {
	if !fieldset.HasParts(owned) && isAtomicMap(s) {
		return object
	}
	part := make(map[string]any)
	for name, member := range object {
		if below, isOwned := owned["f:"+name]; isOwned {
			part[name] = ownedPart(member, below, memberSchema(s, name))
		}
	}
	return part
}

// ownedItems returns the items of a list with keys, or of a set, that are owned, in the order of the list.
func ownedItems(items []any, owned fieldset.Set, s schema) []any {
	itemSchema, _ := s["items"].(schema)
	found := make(map[int]any)
	for element, below := range owned {
		item, isItem := fieldset.ParseItem(element)
		i := item.IndexIn(items, true)
		if !isItem || i < 0 {
			continue
		}
		found[i] = items[i]
		if whole, isObject := items[i].(map[string]any); isObject && item.Keys != nil {
			part := ownedMembers(whole, below, itemSchema)
			for name := range item.Keys {
				if own, ok := whole[name]; ok {
					part[name] = own
				}
			}
			found[i] = part
		}
	}
	part := []any{}
	for _, i := range slices.Sorted(maps.Keys(found)) {
		part = append(part, found[i])
	}
	return part
}

// ownedFields returns the field set of a converted part of an object, by the schema of its version. whole is the whole
// object in this version, and empty is what a part without values is converted to. The set follows the rules of a
// server-side apply. It lacks two kinds of places:
//
//   - A place that the whole object lacks.
//   - A place that has the same value in empty, unless old, the set before the conversion, has the place too: a field such as
//     "paused: false", which a converter always sets.
//
// An example:
//
//	converted  {schedule: "* 3", paused: false}
//	empty      {paused: false}
//	whole      {schedule: "30 3", paused: false}
//	old        {"f:hour": {}}
//	result     {"f:schedule": {}}
func ownedFields(converted, empty, whole any, old fieldset.Set, s schema) fieldset.Set {
	places, emptyPlaces, wholePlaces := placesOf(converted, s), placesOf(empty, s), placesOf(whole, s)
	return selectPlaces(places, emptyPlaces, wholePlaces, old, converted, empty)
}

// selectPlaces returns the places that [ownedFields] describes. converted and empty are the values at the places.
func selectPlaces(places, emptyPlaces, wholePlaces, old fieldset.Set, converted, empty any) fieldset.Set {
	selected := make(fieldset.Set)
	for element, below := range places {
		inEmpty, isInEmpty := emptyPlaces[element]
		inWhole, isInWhole := wholePlaces[element]
		inOld, isInOld := old[element]
		value, _ := fieldset.PartOf(converted, element)
		emptyValue, _ := fieldset.PartOf(empty, element)
		switch {
		case !isInWhole || element == ".":
		case fieldset.HasParts(below):
			if parts := selectPlaces(below, inEmpty, inWhole, inOld, value, emptyValue); len(parts) > 0 {
				selected[element] = parts
			}
		case isInOld || !isInEmpty || !reflect.DeepEqual(value, emptyValue):
			selected[element] = below
		}
	}
	if itself, ok := places["."]; ok && len(selected) > 0 {
		selected["."] = itself
	}
	return selected
}

// placesOf returns the field set of a manager that has applied value. The set is empty if value is one place: a scalar,
// an empty object, an atomic list or an atomic map. The set is nil if value has no place, as a set without items.
func placesOf(value any, s schema) fieldset.Set {
	places := make(fieldset.Set)
	switch v := value.(type) {
	case map[string]any:
		if isAtomicMap(s) {
			return places
		}
		properties, _ := s["properties"].(schema)
		for name, member := range v {
			below := placesOf(member, memberSchema(s, name))
			// A member of a map is a place itself. A member of an object with properties is not.
			if properties[name] == nil && len(below) > 0 {
				below["."] = fieldset.Set{}
			}
			if below != nil {
				places["f:"+name] = below
			}
		}
		if len(v) > 0 && len(places) == 0 {
			return nil
		}
	case []any:
		if kind := s["x-kubernetes-list-type"]; kind != "map" && kind != "set" {
			return places
		}
		itemSchema, _ := s["items"].(schema)
		for _, item := range v {
			below := placesOf(item, itemSchema)
			if len(below) > 0 {
				below["."] = fieldset.Set{}
			}
			if element := elementOf(item, s); element != "" {
				places[element] = below
			}
		}
		if len(places) == 0 {
			return nil
		}
	}
	return places
}

// elementOf returns the element of an item of a list with keys or of a set. A key that the item lacks has its default.
// The element of an item without any of its keys is empty.
func elementOf(item any, s schema) string {
	prefix, value := "v:", item
	if s["x-kubernetes-list-type"] == "map" {
		keys := make(map[string]any)
		names, _ := s["x-kubernetes-list-map-keys"].([]any)
		members, _ := item.(map[string]any)
		itemSchema, _ := s["items"].(schema)
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
		if len(keys) == 0 {
			return ""
		}
		prefix, value = "k:", keys
	}
	text, err := kube.Marshal(value) // a map has its members in the order of their names
	if err != nil {
		return ""
	}
	return prefix + string(text)
}

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
