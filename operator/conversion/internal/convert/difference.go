package convert

import (
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
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
	if jsontree.Equal(original, returned) {
		return
	}
	originalObject, isOriginalObject := original.(map[string]any)
	returnedObject, isReturnedObject := returned.(map[string]any)
	if isOriginalObject && isReturnedObject {
		d.compareObjects(path, s, originalObject, returnedObject)
		return
	}
	if original != (jsontree.Missing{}) && returned != (jsontree.Missing{}) {
		originalList, isOriginalKeyed := jsontree.KeyedListOf(s, original)
		returnedList, isReturnedKeyed := jsontree.KeyedListOf(s, returned)
		if isOriginalKeyed && isReturnedKeyed {
			d.compareKeyedLists(path, s, originalList, returnedList)
			return
		}
	}
	if returned == any(jsontree.Missing{}) {
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
		d.addAbsent(append(path, segment{name, false}), jsontree.Property(s, name), value, n)
	}
	list, isKeyed := jsontree.KeyedListOf(s, original)
	isKeyed = isKeyed && len(list.Keys) > 0
	if isKeyed {
		for _, key := range list.Keys {
			d.addAbsentItem(append(path, segment{key, true}), s, list.Items[key], n)
		}
		*d = append(*d, &entry{path: slices.Clone(path), original: orderValue(list.Keys), returned: []any{}, hasOrder: true})
	}
	if len(object) == 0 && !isKeyed {
		*d = append(*d, &entry{path: slices.Clone(path), original: original, returned: jsontree.Missing{}, absentDepth: n})
	}
}

// addAbsentItem adds the fields of an item of a list of s, but for the keys, which are in the path.
func (d *differences) addAbsentItem(path []segment, s *crd.Schema, item map[string]any, n int) {
	if len(item) == len(s.ListMapKeys) || !jsontree.Equal(keyFields(path), fieldsOf(item, s.ListMapKeys)) {
		*d = append(*d, &entry{path: slices.Clone(path), original: item, returned: jsontree.Missing{}, absentDepth: n})
		return
	}
	for name, value := range item {
		if !slices.Contains(s.ListMapKeys, name) {
			d.addAbsent(append(path, segment{name, false}), jsontree.Property(s.Items, name), value, n)
		}
	}
}

// keyFields returns the fields in the key at the end of a path.
func keyFields(path []segment) any { return jsontree.Parse([]byte(path[len(path)-1].text)) }

// fieldsOf returns an object with some fields of another one.
func fieldsOf(object map[string]any, names []string) any {
	fields := make(map[string]any, len(names))
	for _, name := range names {
		jsontree.SetMember(fields, name, jsontree.Member(object, name))
	}
	return fields
}

func (d *differences) compareObjects(path []segment, s *crd.Schema, original, returned map[string]any) {
	for name, value := range original {
		d.compare(append(path, segment{name, false}), jsontree.Property(s, name), value, jsontree.Member(returned, name))
	}
	for name, value := range returned {
		if _, isThere := original[name]; !isThere {
			d.compare(append(path, segment{name, false}), jsontree.Property(s, name), jsontree.Missing{}, value)
		}
	}
}

func (d *differences) compareKeyedLists(path []segment, s *crd.Schema, original, returned jsontree.KeyedList) {
	for _, key := range original.Keys {
		inner := append(path, segment{key, true})
		if item := returned.Item(key); item == any(jsontree.Missing{}) {
			d.addAbsentItem(inner, s, original.Items[key], len(inner))
		} else {
			d.compare(inner, s.Items, original.Items[key], item)
		}
	}
	for _, key := range returned.Keys {
		if original.Items[key] == nil {
			d.compare(append(path, segment{key, true}), s.Items, jsontree.Missing{}, returned.Items[key])
		}
	}
	if !slices.Equal(original.Keys, returned.Keys) {
		*d = append(*d, &entry{
			path: slices.Clone(path), original: orderValue(original.Keys), returned: orderValue(returned.Keys), hasOrder: true,
		})
	}
}
