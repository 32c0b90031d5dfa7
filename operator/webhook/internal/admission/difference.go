package admission

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yare-go/yare/crd"
)

// difference is what a defaulter has changed in an object: what it may add, and what is dropped.
//
// Three texts are compared: the request, the decoded request encoded again (before), and the result of the defaulter
// encoded (after). The first two differ where the Go type lacks fields, and where the encoder writes zeros that the
// request does not have. Example:
//
//	request {"spec":{"size":0,"unknown":1}}
//	before  {"spec":{"size":0,"count":0}}
//	after   {"spec":{"size":7,"count":0,"image":"x"}}
//
// The defaulter has changed size and image. The request has size, so that change is dropped. It lacks image, which is
// added. The count is the encoder's, because before and after have the same.
type difference struct {
	// patch holds the operations of a JSON patch, without the closing bracket. It is nil if there are none.
	patch []byte
	// dropped holds the paths of what the defaulter wanted to change or remove, such as spec.size.
	dropped []string
}

// isFixed reports whether a defaulter must leave alone what is at path: the metadata, the status and the kind.
func isFixed(path string) bool {
	switch path {
	case "/apiVersion", "/kind", "/metadata", "/status":
		return true
	}
	return false
}

// compare adds the difference of a value that the request has at path, a JSON pointer. before is nil if the encoder
// leaves the value out. s is nil where anything may stand.
func (d *difference) compare(path string, s *crd.Schema, before, after, request []byte) {
	switch {
	case bytes.Equal(before, after):
	case string(request) == "null": // the defaulter cannot see that the request sets it
	case isFixed(path):
		d.addDropped(path)
	case opensWith(after, '{') && opensWith(request, '{') && (s == nil || s.MapType != "atomic"):
		d.compareObjects(path, s, before, after, request)
	case opensWith(after, '[') && opensWith(request, '[') && s != nil && s.ListType == "map":
		d.compareKeyedLists(path, s, before, after, request)
	case opensWith(after, '[') && opensWith(request, '[') && s != nil && s.ListType == "set":
		d.compareSets(path, before, after)
	default:
		d.addDropped(path)
	}
}

// compareObjects adds the difference of an object or a map that is not atomic.
func (d *difference) compareObjects(path string, s *crd.Schema, before, after, request []byte) {
	old, wanted, requested := membersOf(before), membersOf(after), membersOf(request)
	for _, name := range wanted.names {
		value := wanted.values[name]
		inner := path + "/" + pointerToken(name)
		if was, isThere := old.values[name]; isThere && bytes.Equal(was, value) {
			continue
		}
		if has, isThere := requested.values[name]; isThere {
			d.compare(inner, propertyOf(s, name), old.values[name], value, has)
		} else if isFixed(inner) {
			d.addDropped(inner)
		} else if value = changedMembers(old.values[name], value); string(value) != "{}" ||
			!opensWith(old.values[name], '{') {
			d.addOperation(inner, value)
		}
	}
	for _, name := range old.names {
		if wanted.values[name] == nil && requested.values[name] != nil {
			d.addDropped(path + "/" + pointerToken(name))
		}
	}
}

// compareKeyedLists adds the difference of a list whose items have keys. New items are added at the end.
func (d *difference) compareKeyedLists(path string, s *crd.Schema, before, after, request []byte) {
	old, wanted, requested := itemsOf(s, before), itemsOf(s, after), itemsOf(s, request)
	for i, value := range wanted.values {
		key := wanted.keys[i]
		if at, isThere := requested.index[key]; isThere {
			var was []byte
			if at, isThere := old.index[key]; isThere {
				was = old.values[at]
			}
			d.compare(path+"/"+strconv.Itoa(at), s.Items, was, value, requested.values[at])
		} else {
			d.addOperation(path+"/-", value)
		}
	}
	for i, key := range requested.keys {
		if _, isThere := wanted.index[key]; !isThere {
			d.addDropped(path + "/" + strconv.Itoa(i))
		}
	}
}

// compareSets adds the difference of a list of different values.
func (d *difference) compareSets(path string, before, after []byte) {
	old, wanted := elementsOf(before), elementsOf(after)
	for _, value := range wanted {
		if !contains(old, value) {
			d.addOperation(path+"/-", value)
		}
	}
	for _, value := range old {
		if !contains(wanted, value) {
			d.addDropped(path)
		}
	}
}

// contains reports whether value is one of all.
func contains(all [][]byte, value []byte) bool {
	for _, each := range all {
		if bytes.Equal(each, value) {
			return true
		}
	}
	return false
}

// addOperation adds an operation to the patch, which adds value at path. There is nothing to add if value is null.
func (d *difference) addOperation(path string, value []byte) {
	if string(value) == "null" {
		return
	}
	separator := byte(',')
	if d.patch == nil {
		separator = '['
	}
	d.patch = append(append(d.patch, separator), `{"op":"add","path":`...)
	d.patch = append(appendText(d.patch, path), `,"value":`...)
	d.patch = append(append(d.patch, value...), '}')
}

// addDropped adds what is at path, a JSON pointer, to what is dropped.
func (d *difference) addDropped(path string) {
	d.dropped = append(d.dropped, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
}

// changedMembers returns an object with the members of after that differ from those of before. It returns after if one
// of the two is no object. Example: of {"count":0} and {"image":"x","count":0} it returns {"image":"x"}.
func changedMembers(before, after []byte) []byte {
	if !opensWith(before, '{') || !opensWith(after, '{') {
		return after
	}
	old := membersOf(before)
	result := []byte{'{'}
	eachMember(after, func(name string, value []byte) {
		if was, isThere := old.values[name]; !isThere || !bytes.Equal(was, value) {
			result = appendMember(result, name, changedMembers(was, value))
		}
	})
	return append(result, '}')
}

// items are the elements of a list whose items have keys.
type items struct {
	values [][]byte
	keys   []string
	// index holds the place of each key. The API server refuses a list that has a key twice.
	index map[string]int
}

// itemsOf returns the items of a list with the schema s.
func itemsOf(s *crd.Schema, list []byte) items {
	all := items{values: elementsOf(list), index: make(map[string]int)}
	for i, value := range all.values {
		key := keyOf(s, value)
		all.keys = append(all.keys, key)
		all.index[key] = i
	}
	return all
}

// keyOf returns the values of the keys of an item as one text. A key that is missing has its default.
func keyOf(s *crd.Schema, value []byte) string {
	key := ""
	for _, name := range s.ListMapKeys {
		part := memberOf(value, name)
		if p := propertyOf(s.Items, name); part == nil && p != nil {
			part = p.Default
		}
		key += string(part) + "\n"
	}
	return key
}

// propertyOf returns the schema of a member of an object or a map, or nil if anything may stand there.
func propertyOf(s *crd.Schema, name string) *crd.Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.AdditionalProperties
}

// pointerToken returns a name as a JSON pointer has it.
func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
