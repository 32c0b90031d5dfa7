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
	*d = append(*d, &entry{path: slices.Clone(path), home: home, back: back})
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
		d.compare(append(path, segment{key, true}), s.Items, home.items[key], back.item(key))
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
