package convert

import (
	"slices"

	"github.com/yare-go/yare/crd"
)

// difference returns the entries for an object whose content is original, where the functions return the content
// returned. The entries are sorted.
//
// Objects and lists with keys are compared by their members and items. Any other list is one value. For example, where
// ports is a list with the key name:
//
//	original  {"spec":{"size":5,"ports":[{"name":"a","x":1},{"name":"b"}]}}
//	returned  {"spec":{"ports":[{"name":"a"}],"mode":""}}
//
//	spec.mode              original is missing, returned is ""
//	spec.ports[name=a].x   original is 1, returned is missing
//	spec.ports[name=b]     original is {"name":"b"}, returned is missing
//	spec.ports             the order of original is a b, the order of returned is a
//	spec.size              original is 5, returned is missing
func difference(s *crd.Schema, original, returned map[string]any) []*entry {
	var d differences
	d.compareObjects(nil, s, original, returned)
	slices.SortFunc(d, (*entry).compare)
	return d
}

// differences collects entries.
type differences []*entry

// compare adds the difference of two values at path.
func (d *differences) compare(path []segment, s *crd.Schema, original, returned any) {
	if areEqual(original, returned) {
		return
	}
	originalObject, isOriginalObject := original.(map[string]any)
	returnedObject, isReturnedObject := returned.(map[string]any)
	if isOriginalObject && isReturnedObject {
		d.compareObjects(path, s, originalObject, returnedObject)
		return
	}
	if original != (missing{}) && returned != (missing{}) {
		originalList, isOriginalKeyed := keyedListOf(s, original)
		returnedList, isReturnedKeyed := keyedListOf(s, returned)
		if isOriginalKeyed && isReturnedKeyed {
			d.compareKeyedLists(path, s, originalList, returnedList)
			return
		}
	}
	if returned == any(missing{}) {
		d.addAbsent(path, s, original, len(path))
		return
	}
	*d = append(*d, &entry{path: slices.Clone(path), original: original, returned: returned})
}

// addAbsent adds the fields of original, of which returned has nothing from the first n segments of path on. Each field
// has an entry of its own. For example, spec.limits is {"cpu":1,"memory":2} in original. If returned has no limits,
// spec.limits.cpu and spec.limits.memory have entries.
func (d *differences) addAbsent(path []segment, s *crd.Schema, original any, n int) {
	object, _ := original.(map[string]any)
	for name, value := range object {
		d.addAbsent(append(path, segment{name, false}), propertyOf(s, name), value, n)
	}
	list, isKeyed := keyedListOf(s, original)
	isKeyed = isKeyed && len(list.keys) > 0
	if isKeyed {
		for _, key := range list.keys {
			d.addAbsentItem(append(path, segment{key, true}), s, list.items[key], n)
		}
		*d = append(*d, &entry{path: slices.Clone(path), original: orderValue(list.keys), returned: []any{}, hasOrder: true})
	}
	if len(object) == 0 && !isKeyed {
		*d = append(*d, &entry{path: slices.Clone(path), original: original, returned: missing{}, absentDepth: n})
	}
}

// addAbsentItem adds the fields of an item of a list of s, but for the keys, which are in the path.
func (d *differences) addAbsentItem(path []segment, s *crd.Schema, item map[string]any, n int) {
	if len(item) == len(s.ListMapKeys) || !areEqual(keyFields(path), fieldsOf(item, s.ListMapKeys)) {
		*d = append(*d, &entry{path: slices.Clone(path), original: item, returned: missing{}, absentDepth: n})
		return
	}
	for name, value := range item {
		if !slices.Contains(s.ListMapKeys, name) {
			d.addAbsent(append(path, segment{name, false}), propertyOf(s.Items, name), value, n)
		}
	}
}

// keyFields returns the fields in the key at the end of a path.
func keyFields(path []segment) any { return parseValue([]byte(path[len(path)-1].text)) }

// fieldsOf returns an object with some fields of another one.
func fieldsOf(object map[string]any, names []string) any {
	fields := make(map[string]any, len(names))
	for _, name := range names {
		setMember(fields, name, memberOf(object, name))
	}
	return fields
}

func (d *differences) compareObjects(path []segment, s *crd.Schema, original, returned map[string]any) {
	for name, value := range original {
		d.compare(append(path, segment{name, false}), propertyOf(s, name), value, memberOf(returned, name))
	}
	for name, value := range returned {
		if _, isThere := original[name]; !isThere {
			d.compare(append(path, segment{name, false}), propertyOf(s, name), missing{}, value)
		}
	}
}

func (d *differences) compareKeyedLists(path []segment, s *crd.Schema, original, returned keyedList) {
	for _, key := range original.keys {
		inner := append(path, segment{key, true})
		if item := returned.item(key); item == any(missing{}) {
			d.addAbsentItem(inner, s, original.items[key], len(inner))
		} else {
			d.compare(inner, s.Items, original.items[key], item)
		}
	}
	for _, key := range returned.keys {
		if original.items[key] == nil {
			d.compare(append(path, segment{key, true}), s.Items, missing{}, returned.items[key])
		}
	}
	if !slices.Equal(original.keys, returned.keys) {
		*d = append(*d, &entry{
			path: slices.Clone(path), original: orderValue(original.keys), returned: orderValue(returned.keys), hasOrder: true,
		})
	}
}

// propertyOf returns the schema of a member of an object or a map, or nil if the schema has none.
func propertyOf(s *crd.Schema, name string) *crd.Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.AdditionalProperties
}
