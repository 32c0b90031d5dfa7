package conversion

import (
	"slices"

	"github.com/yare-go/yare/crd"
)

// difference returns the entries for an object whose content is home, where the functions give the content back. The
// entries are sorted.
//
// Objects and lists with keys are compared by their members and items. Any other list is one value. For example, where
// ports is a list with the key name:
//
//	home  {"spec":{"size":5,"ports":[{"name":"a","x":1},{"name":"b"}]}}
//	back  {"spec":{"ports":[{"name":"a"}],"mode":""}}
//
//	spec.mode              home is missing, back is ""
//	spec.ports[name=a].x   home is 1, back is missing
//	spec.ports[name=b]     home is {"name":"b"}, back is missing
//	spec.ports             the order at home is a b, the order of back is a
//	spec.size              home is 5, back is missing
func difference(s *crd.Schema, home, back map[string]any) []*entry {
	var d differences
	d.compareObjects(nil, s, home, back)
	slices.SortFunc(d, (*entry).compare)
	return d
}

// differences collects entries.
type differences []*entry

// compare adds the difference of two values at path.
func (d *differences) compare(path []segment, s *crd.Schema, home, back any) {
	if areEqual(home, back) {
		return
	}
	homeObject, isHomeObject := home.(map[string]any)
	backObject, isBackObject := back.(map[string]any)
	if isHomeObject && isBackObject {
		d.compareObjects(path, s, homeObject, backObject)
		return
	}
	if home != (missing{}) && back != (missing{}) {
		homeList, isHomeKeyed := keyedListOf(s, home)
		backList, isBackKeyed := keyedListOf(s, back)
		if isHomeKeyed && isBackKeyed {
			d.compareKeyedLists(path, s, homeList, backList)
			return
		}
	}
	if back == any(missing{}) {
		d.addAbsent(path, s, home, len(path))
		return
	}
	*d = append(*d, &entry{path: slices.Clone(path), home: home, back: back})
}

// addAbsent adds the fields of home, of which back has nothing from the first n segments of path on. Each field has an entry
// of its own. For example, spec.limits is {"cpu":1,"memory":2} at home. If back has no limits, spec.limits.cpu and
// spec.limits.memory have entries.
func (d *differences) addAbsent(path []segment, s *crd.Schema, home any, n int) {
	object, _ := home.(map[string]any)
	for name, value := range object {
		d.addAbsent(append(path, segment{name, false}), propertyOf(s, name), value, n)
	}
	list, isKeyed := keyedListOf(s, home)
	isKeyed = isKeyed && len(list.keys) > 0
	if isKeyed {
		for _, key := range list.keys {
			d.addAbsentItem(append(path, segment{key, true}), s, list.items[key], n)
		}
		*d = append(*d, &entry{path: slices.Clone(path), home: orderValue(list.keys), back: []any{}, hasOrder: true})
	}
	if len(object) == 0 && !isKeyed {
		*d = append(*d, &entry{path: slices.Clone(path), home: home, back: missing{}, absentFrom: n})
	}
}

// addAbsentItem adds the fields of an item of a list of s, but for the keys, which are in the path.
func (d *differences) addAbsentItem(path []segment, s *crd.Schema, item map[string]any, n int) {
	if len(item) == len(s.ListMapKeys) || !areEqual(keyFields(path), fieldsOf(item, s.ListMapKeys)) {
		*d = append(*d, &entry{path: slices.Clone(path), home: item, back: missing{}, absentFrom: n})
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

func (d *differences) compareObjects(path []segment, s *crd.Schema, home, back map[string]any) {
	for name, value := range home {
		d.compare(append(path, segment{name, false}), propertyOf(s, name), value, memberOf(back, name))
	}
	for name, value := range back {
		if _, isThere := home[name]; !isThere {
			d.compare(append(path, segment{name, false}), propertyOf(s, name), missing{}, value)
		}
	}
}

func (d *differences) compareKeyedLists(path []segment, s *crd.Schema, home, back keyedList) {
	for _, key := range home.keys {
		inner := append(path, segment{key, true})
		if item := back.item(key); item == any(missing{}) {
			d.addAbsentItem(inner, s, home.items[key], len(inner))
		} else {
			d.compare(inner, s.Items, home.items[key], item)
		}
	}
	for _, key := range back.keys {
		if home.items[key] == nil {
			d.compare(append(path, segment{key, true}), s.Items, missing{}, back.items[key])
		}
	}
	if !slices.Equal(home.keys, back.keys) {
		*d = append(*d, &entry{path: slices.Clone(path), home: orderValue(home.keys), back: orderValue(back.keys), hasOrder: true})
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
