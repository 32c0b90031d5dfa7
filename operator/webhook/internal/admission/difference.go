package admission

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
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

// compare adds the difference of a value that the request has at path, a JSON pointer. before is missing if the encoder
// leaves the value out. s is nil where anything may stand.
func (d *difference) compare(path string, s *crd.Schema, before, after, request any) {
	if jsontree.Equal(before, after) || request == nil { // the defaulter cannot see that the request sets a null
		return
	}
	object, isObject := after.(map[string]any)
	requestObject, isRequestObject := request.(map[string]any)
	list, isList := after.([]any)
	requestItems, hasKeys := jsontree.KeyedListOf(s, request)
	_, isRequestList := request.([]any)
	switch {
	case isFixed(path):
		d.addDropped(path)
	case isObject && isRequestObject && (s == nil || s.MapType != "atomic"):
		d.compareObjects(path, s, before, object, requestObject)
	case isList && hasKeys:
		d.compareKeyedLists(path, s, before, list, requestItems)
	case isList && isRequestList && s != nil && s.ListType == "set":
		d.compareSets(path, before, list)
	default:
		d.addDropped(path)
	}
}

// compareObjects adds the difference of an object or a map that is not atomic.
func (d *difference) compareObjects(path string, s *crd.Schema, before any, after, request map[string]any) {
	old, _ := before.(map[string]any)
	for _, name := range jsontree.SortedNames(old, after) {
		inner := path + "/" + pointerToken(name)
		was, value := jsontree.Member(old, name), jsontree.Member(after, name)
		has, isThere := request[name]
		switch {
		case jsontree.Equal(was, value):
		case value == (any)(jsontree.Missing{}):
			if isThere {
				d.addDropped(inner)
			}
		case isThere:
			d.compare(inner, jsontree.Property(s, name), was, value, has)
		case isFixed(inner):
			d.addDropped(inner)
		default:
			value = changedMembers(was, value)
			_, wasObject := was.(map[string]any)
			if object, isObject := value.(map[string]any); !wasObject || !isObject || len(object) > 0 {
				d.addOperation(inner, value)
			}
		}
	}
}

// compareKeyedLists adds the difference of a list whose items have keys. New items are added at the end. A defaulter
// may have added an item that is there already.
func (d *difference) compareKeyedLists(
	path string, s *crd.Schema, before any, after []any, request jsontree.KeyedList,
) {
	old, _ := jsontree.KeyedListOf(s, before)
	wanted := make(map[string]any, len(after))
	for _, each := range after {
		item, _ := each.(map[string]any)
		key, _ := jsontree.KeyOf(s, item)
		if wanted[key] = each; request.Items[key] == nil {
			d.addOperation(path+"/-", each)
		}
	}
	for i, key := range request.Keys {
		inner := path + "/" + strconv.Itoa(i)
		if item, isThere := wanted[key]; isThere {
			d.compare(inner, s.Items, old.Item(key), item, request.Items[key])
		} else {
			d.addDropped(inner)
		}
	}
}

// compareSets adds the difference of a list of different values.
func (d *difference) compareSets(path string, before any, after []any) {
	old, _ := before.([]any)
	contains := func(list []any, value any) bool {
		return slices.ContainsFunc(list, func(each any) bool { return jsontree.Equal(each, value) })
	}
	for _, value := range after {
		if !contains(old, value) {
			d.addOperation(path+"/-", value)
		}
	}
	for _, value := range old {
		if !contains(after, value) {
			d.addDropped(path)
		}
	}
}

// addOperation adds an operation to the patch, which adds value at path. There is nothing to add if value is null.
func (d *difference) addOperation(path string, value any) {
	if value == nil {
		return
	}
	separator := byte(',')
	if d.patch == nil {
		separator = '['
	}
	d.patch = append(append(d.patch, separator), `{"op":"add","path":`...)
	d.patch = append(jsontree.AppendText(d.patch, path), `,"value":`...)
	d.patch = append(jsontree.Append(d.patch, value), '}')
}

// addDropped adds what is at path, a JSON pointer, to what is dropped.
func (d *difference) addDropped(path string) {
	d.dropped = append(d.dropped, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
}

// changedMembers returns an object with the members of after that differ from those of before. It returns after if one
// of the two is no object. Example: of {"count":0} and {"image":"x","count":0} it returns {"image":"x"}.
func changedMembers(before, after any) any {
	old, isOld := before.(map[string]any)
	object, isObject := after.(map[string]any)
	if !isOld || !isObject {
		return after
	}
	result := make(map[string]any)
	for name, value := range object {
		if was := jsontree.Member(old, name); !jsontree.Equal(was, value) {
			result[name] = changedMembers(was, value)
		}
	}
	return result
}

// pointerToken returns a name as a JSON pointer has it.
func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
